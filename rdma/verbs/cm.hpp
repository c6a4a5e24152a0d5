// Owners of connection-management objects: the event channel, identifiers, and the queue pair that an
// identifier carries. Thin over <rdma/rdma_cma.h>; see there for what each call does.
//
// An event is copied and acknowledged before anyone acts on it, because destroying an identifier waits for
// its events to be acknowledged. Threading: one thread for a channel and all identifiers on it.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "rdma/error.hpp"
#include "rdma/verbs/objects.hpp"

namespace weir::rdma {

// RDMA connections are named as TCP ones are, in a port space of their own.
using Endpoint = asio::ip::tcp::endpoint;
std::string text(const Endpoint& address);

struct CmEvent {
  rdma_cm_event_type type;
  int status;
  rdma_cm_id* id;         // for CONNECT_REQUEST a new one that the receiver of this event must own
  rdma_cm_id* listen_id;  // the listener of a CONNECT_REQUEST
  // For a CONNECT_REQUEST: how many READs we may answer and send, by the connecting end's settings.
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  // What the peer sent along, as much of it as anything here uses. Transports pad it with zeros.
  std::array<std::byte, 64> private_data{};
  std::uint8_t private_data_bytes = 0;

  std::span<const std::byte> private_bytes() const {
    return std::span(private_data).first(private_data_bytes);
  }
};

class EventChannel {
 public:
  static Result<EventChannel> create();
  int fd() const { return channel_->fd; }
  rdma_event_channel* get() const { return channel_.get(); }
  // The next event, already acknowledged; nothing if none is pending.
  std::optional<CmEvent> next();

 private:
  struct Release {
    void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
  };
  explicit EventChannel(rdma_event_channel* channel) : channel_(channel) {}
  std::unique_ptr<rdma_event_channel, Release> channel_;
};

class CmId {
 public:
  CmId() = default;
  static Result<CmId> create(const EventChannel& channel);
  explicit CmId(rdma_cm_id* adopted) : id_(adopted) {}  // from a CONNECT_REQUEST

  explicit operator bool() const { return id_ != nullptr; }
  rdma_cm_id* get() const { return id_.get(); }
  rdma_cm_id* operator->() const { return id_.get(); }
  void set_context(void* owner) { id_->context = owner; }

  // How long the device waits for an acknowledgement before it sends again, rounded up to what the device can
  // say (IBA 9.7.6.1.3: 4.096 us times a power of two). Before connect or accept; a kernel that cannot keeps
  // its own, seconds.
  void set_ack_timeout(std::chrono::nanoseconds);
  // How long the peer's device waits where our queue pair has no receive posted. rdma_cm says the longest
  // there is, and has no option for it: told to the queue pair itself, which must be ready to send.
  void set_rnr_wait(std::chrono::microseconds wait);
  std::chrono::microseconds rnr_wait() const;  // as the device has it; 0: it does not say
  Result<void> bind(const Endpoint& address);
  Result<void> listen(int backlog);
  Endpoint local() const;
  Endpoint remote() const;

 private:
  struct Release {
    void operator()(rdma_cm_id* id) const {
      if (id->qp != nullptr) rdma_destroy_qp(id);
      rdma_destroy_id(id);
    }
  };
  std::unique_ptr<rdma_cm_id, Release> id_;
};

}  // namespace weir::rdma

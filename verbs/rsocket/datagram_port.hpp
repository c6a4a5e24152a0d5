// The UD queue pair of a datagram rsocket for one local address, with the slots its messages are sent from
// and received into.
//
// Bounded: a fixed number of slots each way. What arrives while all receive slots are taken is lost, as UD
// has it. Not thread safe: the socket's mutex guards it.
#pragma once

#include <expected>
#include <functional>
#include <optional>

#include "verbs/cm/endpoint.hpp"
#include "verbs/rsocket/alarm.hpp"
#include "verbs/rsocket/cm_events.hpp"
#include "verbs/rsocket/options.hpp"
#include "verbs/rsocket/pieces.hpp"

namespace weir::rsocket {

class DatagramPort {
 public:
  // `address`: of this host; its port is what messages say they come from. The error is an errno.
  static std::expected<std::unique_ptr<DatagramPort>, int> make(const cm::Endpoint& address,
                                                                const Options& options);
  ~DatagramPort();
  DatagramPort(const DatagramPort&) = delete;
  DatagramPort& operator=(const DatagramPort&) = delete;

  static constexpr std::size_t message_bytes = 4096;  // headers and data: the path's MTU

  const cm::Endpoint& address() const { return address_; }
  std::uint32_t qpn() const { return id_->qp->qp_num; }
  ibv_ah* address_handle(const cm::Endpoint& to) const;  // the caller's; null and errno

  // Calls `received(slot, bytes)` for each message. True: something completed.
  bool progress(const std::function<void(std::uint32_t slot, std::span<const std::byte> bytes)>& received);
  void release(std::uint32_t slot);  // the bytes are no longer needed
  bool can_send() const { return !free_.empty(); }
  // can_send(). The bytes are copied. 0 or an errno.
  int send(ibv_ah* to, std::uint32_t qpn, std::span<const std::byte> header, Pieces& data);

  // Rings when progress() has something to do.
  int descriptor() const { return alarm_.descriptor(); }
  bool set_alarm() { return alarm_.set(cq_); }
  bool silence() { return alarm_.silence(); }

 private:
  DatagramPort() = default;
  int set_up(const Options& options);
  std::span<std::byte> receive_slot(std::uint32_t slot) const;
  std::span<std::byte> send_slot(std::uint32_t slot) const;

  cm::Endpoint address_;
  ChannelPtr events_;
  IdPtr id_;
  Alarm alarm_;  // outlives the completion queue
  ibv_cq* cq_ = nullptr;
  std::unique_ptr<std::byte[]> memory_;
  ibv_mr* mr_ = nullptr;
  std::uint32_t receive_slots_ = 0, send_slots_ = 0;
  std::vector<std::uint32_t> free_;  // send slots
};

}  // namespace weir::rsocket

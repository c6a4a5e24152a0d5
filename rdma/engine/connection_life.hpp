// How a connection over one reliable queue pair begins and ends, whatever protocol it carries.
//
// Life: connecting or accepting -> established -> (closing: data already taken is still sent) -> ended. If a
// peer's process is stopped inside an operation of ours, queue pair and memory are kept until it has left
// (`leaving`); the user learns of the end at once, and nobody waits. The protocol (connection.hpp,
// channel_connection.hpp) derives from this and defines what it needs before the first packet, what it does
// once established, and when no work of its own is outstanding.
//
// A failure ends only this connection, with a typed error. What the peer sent before it left is still taken
// from the completion queue: the end waits until the queue was seen empty.
//
// Ownership: the Engine owns it; a Stream or Channel holds a pointer until it calls abandon(). The queue pair
// is released as soon as the connection has ended, memory that its user still reads once the user is gone.
// Threading: the engine's thread. Time is passed in.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>

#include "rdma/device/device.hpp"
#include "rdma/engine/connection_host.hpp"
#include "rdma/engine/io_op.hpp"
#include "rdma/verbs/cm.hpp"

namespace weir::rdma {

class ConnectionLife;

// Receives the events of an identifier: the identifier's context points at it.
class CmOwner {
 public:
  virtual ~CmOwner() = default;
  virtual void on_cm_event(const CmEvent&) = 0;
};

// Learns, once, whether an accepted connection was established or ended before that.
class AcceptedEvents {
 public:
  virtual void ready(ConnectionLife& connection) = 0;
  virtual void failed(ConnectionLife& connection) = 0;

 protected:
  ~AcceptedEvents() = default;
};

using ConnectOpPtr = IoOpPtr<std::error_code>;

struct LifeSettings {
  std::chrono::milliseconds resolve_timeout, ack_timeout, linger;
};
// How long a peer may take to be ready for a connection that we accepted; this takes one message.
inline constexpr std::chrono::seconds longest_accept{10};

class ConnectionLife : public CmOwner {
 public:
  enum class Side { client, server };

  // Client: begins to resolve; the outcome goes to the connect operation.
  void start_connect(const Endpoint& peer, ConnectOpPtr op);
  // Server: takes the identifier of a CONNECT_REQUEST, makes the queue pair and accepts. `events` learn once
  // whether the connection was established; if this call fails, the request is rejected.
  Result<void> start_accept(CmId id, const CmEvent& request, AcceptedEvents& events);
  void forget_events() { accepted_events_ = nullptr; }
  // When start_accept() was called.
  std::chrono::steady_clock::time_point accepted_at() const { return accepted_at_; }

  bool ended() const { return state_ == State::ended; }
  // Releases queue pair and memory. Returns false if the peer is still inside; try again later.
  bool try_leave();
  // Nothing will follow what can still be read: eof, or the error that ended the connection.
  const Error& end_cause() const { return cause_; }
  void cancel_connect();

  // The user is gone or has closed, so nothing will be read again. Data already taken is still sent, for at
  // most `linger`.
  void abandon();
  // Ends at once; outstanding data is lost.
  void end(std::error_code cause, std::string what);

  // Called by the engine.
  void on_cm_event(const CmEvent&) override;
  virtual void on_completion(const ibv_wc& completion) = 0;
  // Before on_completion(), as long as the connection is being accepted: a message shows that the peer is
  // ready. Where the packet that says so is lost the device would wait for it in vain (rdma_notify(3)).
  void heard(const ibv_wc& completion);
  virtual void on_tick(Clock::time_point now);
  virtual void notify() = 0;  // runs callbacks and operations that became ready
  virtual void destroy_ops() { connect_op_.reset(); }
  void on_queue_empty();  // awaited_queue() was seen empty after the connection began to end
  const Device::Queue* awaited_queue() const { return awaited_; }
  std::uint64_t tag() const { return tag_; }

  Endpoint local() const { return local_; }
  Endpoint remote() const { return remote_; }

 protected:
  enum class State { idle, resolving, connecting, accepting, established, closing, ended };

  // The queue pair to make.
  struct QueuePairShape {
    std::uint32_t send_depth = 0, receive_depth = 0, max_pieces = 1, inline_bytes = 0;
    ibv_cq* send_cq = nullptr;
    ibv_cq* receive_cq = nullptr;
    ibv_srq* srq = nullptr;  // instead of receive_depth
  };

  ConnectionLife(ConnectionHost& engine, std::uint64_t tag, Side side, const LifeSettings& settings);

  // --- what the protocol defines

  // Memory, queue pair and receives on device_, before connect or accept; queue_ too.
  virtual Result<void> prepare() = 0;
  // How many READs may be outstanding in each direction, out of at most what the device can do.
  virtual std::uint8_t read_depth() const { return 1; }
  // How often the device tries again when the peer has no receive posted. 7 is "for ever": a peer that is
  // slow to post receives is not dead.
  virtual std::uint8_t rnr_retries() const { return 7; }
  // How long the device waits before that; nullopt: the connection manager's default, up to 655 ms.
  virtual std::optional<std::chrono::microseconds> rnr_wait() const { return std::nullopt; }
  // Travels with our half of the handshake.
  virtual std::span<const std::byte> greeting() const { return {}; }
  // Takes the peer's half; an error refuses the connection.
  virtual Result<void> greeted(std::span<const std::byte>) { return {}; }
  // The queue on which sends complete, if it is not queue_: an error that only send completions report must
  // be seen before the end, too.
  virtual Device::Queue* queue_of_sends() const { return queue_; }
  virtual void on_established() = 0;
  virtual void on_abandoned() = 0;  // cancels what waits
  // While closing: whether nothing is outstanding any more. If that changes later, the protocol calls
  // try_hang_up().
  virtual bool drained() = 0;
  // The queue pair sends and receives nothing more and is about to be destroyed.
  virtual void before_queue_pair_goes() {}
  // The peer has left the queue pair and cannot come back: destroys what grants rights through it.
  virtual void revoke_rights() {}
  virtual void release_resources() = 0;  // the identifier and its queue pair are gone already
  virtual void release_unread() = 0;     // nobody will read any more
  // The error for a failed completion that means something to the protocol; a code of 0 if it does not.
  virtual Error explain(const ibv_wc& completion) const = 0;

  // --- what the protocol uses

  Result<void> create_queue_pair(QueuePairShape shape);
  void on_failed(const ibv_wc& completion);
  void peer_left(std::error_code cause, std::string what);
  void try_hang_up();
  void mark_dirty();
  void notify_connector();  // first in notify()

  ConnectionHost& engine_;
  const std::uint64_t tag_;  // in the wr_id of every work request; never reused
  const Side side_;
  State state_ = State::idle;
  Device* device_ = nullptr;
  Device::Queue* queue_ = nullptr;  // of the receives
  std::uint32_t inline_bytes_ = 0;  // what create_queue_pair() was granted
  CmId id_;
  Error cause_;
  bool abandoned_ = false;
  bool dirty_ = false;
  Endpoint local_;
  Endpoint remote_;

 private:
  Result<void> take_device();
  Result<void> connect_now();
  rdma_conn_param parameters(const CmEvent* request) const;
  void established(const CmEvent& event);
  void finish();
  void let_go();
  void discard();

  LifeSettings life_;
  Clock::time_point linger_until_{};
  Clock::time_point accepted_at_{};
  AcceptedEvents* accepted_events_ = nullptr;
  ConnectOpPtr connect_op_;
  Device::Queue* awaited_ = nullptr;
  bool heard_ = false;    // a message, while accepting
  bool leaving_ = false;  // ended, and not let_go() yet
};

}  // namespace weir::rdma

// One connection of Valkey over RDMA, client or server: the protocol and the queue pair it runs on.
//
// Life: connecting or accepting -> established -> (closing: bytes already taken still go out) -> ended.
// Whatever the peer does wrong ends this connection only, with a typed error. Order, as the protocol has it:
// receives are posted before connect or accept; once ESTABLISHED we announce our receive buffer without
// waiting for the peer; we write only into a buffer that the peer announced.
//
// Ownership: the Engine owns every Connection; a Stream holds a pointer until it calls abandon(). The queue
// pair and the registrations go as soon as the connection ended, the receive buffers only when the Stream is
// gone or has read them. Threading: the engine's thread. Time is passed in.
#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>

#include "rdma/callback_slot.hpp"
#include "rdma/cm.hpp"
#include "rdma/device.hpp"
#include "rdma/io_op.hpp"
#include "rdma/memory_pool.hpp"
#include "rdma/receive_window.hpp"
#include "rdma/send_queue.hpp"
#include "rdma/send_window.hpp"
#include "rdma/settings.hpp"

namespace weir::rdma {

class Engine;
class Connection;
class Listener;

// Who gets the events of an identifier: the identifier's context points at it.
class CmOwner {
 public:
  virtual ~CmOwner() = default;
  virtual void on_cm_event(const CmEvent&) = 0;
};

using Clock = std::chrono::steady_clock;

// A read or write that waits: transfer() moves what can be moved now and says how much.
class TransferOp : public IoOp<std::error_code, std::size_t> {
 public:
  virtual std::size_t transfer(Connection&) = 0;

 protected:
  ~TransferOp() = default;
};
using TransferOpPtr = std::unique_ptr<TransferOp, DestroyOp>;
using ConnectOpPtr = IoOpPtr<std::error_code>;

struct ConnectionStats {
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t immediates = 0;     // WRITE_WITH_IMM received
  std::uint64_t writes = 0;         // WRITE_WITH_IMM posted
  std::uint64_t announcements = 0;  // of our buffers
  std::uint64_t writer_stalls = 0;  // a write took less than it was offered
};

class Connection final : public CmOwner {
 public:
  using Callback = CallbackSlot::Callback;

  // Which half of the protocol we speak.
  enum class Side { client, server };

  Connection(Engine& engine, std::uint64_t tag, Side side, const StreamSettings& settings);
  ~Connection() override;

  // Client: begins to resolve; the outcome goes to the connect operation.
  void start_connect(const Endpoint& peer, ConnectOpPtr op);
  // Server: takes the identifier of a CONNECT_REQUEST, makes the queue pair and accepts. `listener` hears
  // once whether the connection was established; on failure here the request is rejected.
  Result<void> start_accept(CmId id, Listener& listener);
  void forget_listener() { listener_ = nullptr; }

  // Data, for Stream; see there.
  std::span<const std::byte> readable() const;
  void consume(std::size_t bytes);
  std::size_t write(std::span<const asio::const_buffer> buffers);
  bool can_read() const { return window_.readable().bytes > 0; }
  bool ended() const { return state_ == State::ended; }
  // Nothing more will come after readable(): eof, or the error that ended the connection.
  const Error& end_cause() const { return cause_; }

  void wait_read(TransferOpPtr op) { read_op_ = std::move(op); }
  void wait_write(TransferOpPtr op) { write_op_ = std::move(op); }
  bool reading() const { return read_op_ != nullptr; }
  bool writing() const { return write_op_ != nullptr; }
  void cancel_read();
  void cancel_write();
  void cancel_connect();
  void on_readable(Callback callback);
  void on_writable(Callback callback);

  // The Stream is gone or closed: nobody will look again. Bytes already taken still go out, for `linger` at
  // most.
  void abandon();
  // Ends at once, with what is under way lost.
  void end(std::error_code cause, std::string what);

  // For the engine.
  void on_cm_event(const CmEvent&) override;
  void on_completion(const ibv_wc& completion);
  void on_queue_empty();  // the completion queue was seen empty after the connection began to end
  void on_tick(Clock::time_point now);
  void notify();  // runs callbacks and operations that became ready
  void destroy_ops();
  std::uint64_t tag() const { return tag_; }

  const ConnectionStats& stats() const { return stats_; }
  Endpoint local() const { return local_; }
  Endpoint remote() const { return remote_; }

 private:
  friend class Engine;
  static constexpr std::uint32_t max_receive_batch = 64;
  enum class State { idle, resolving, connecting, accepting, established, closing, ended };

  struct ReceiveBuffer {
    MemoryPool::Block block;
    std::optional<MemoryRegion> region;  // the peer's right to write it
  };

  Result<void> prepare();  // device objects for id_, receives posted
  Result<void> create_queue_pair();
  Result<void> take_buffer(ReceiveBuffer& buffer);
  Result<void> post_receives(std::uint32_t count);
  Result<void> connect_now();
  void established();
  void announce_if_due();
  void send_control(const ControlMessage& message);
  void on_receive(const ibv_wc& completion);
  void on_send_done();
  void on_failed(const ibv_wc& completion);
  void on_control(std::span<const std::byte> bytes);
  void replenish();
  bool post_data(std::span<ibv_sge> pieces, std::uint32_t bytes, std::uint32_t staged);
  void peer_left(std::error_code cause, std::string what);
  void finish();
  void release_device();
  void discard();
  void try_hang_up();
  void mark_dirty();
  void notify_reader();
  void notify_writer();
  bool can_write() const;
  std::uint32_t queue_entries() const;
  std::byte* receive_slot(std::uint32_t index) const;

  Engine& engine_;
  const std::uint64_t tag_;  // in the wr_id of every work request; never reused
  const Side side_;
  const StreamSettings settings_;
  State state_ = State::idle;

  Device* device_ = nullptr;
  Device::Queue* queue_ = nullptr;
  MemoryPool::Block control_;  // receive slots, then send slots, of one control message each
  MemoryPool::Block staging_;
  std::array<ReceiveBuffer, ReceiveWindow::buffers> receive_buffers_;
  CmId id_;
  std::uint32_t control_lkey_ = 0;
  std::uint32_t staging_lkey_ = 0;
  std::uint32_t inline_bytes_ = 0;
  std::uint32_t max_pieces_ = 1;

  ReceiveWindow window_;
  SendWindow peer_window_;
  SendQueue send_queue_;
  std::uint32_t next_receive_ = 0;   // slot that the next receive completion belongs to
  std::uint32_t used_receives_ = 0;  // completed and not yet posted again
  std::uint32_t next_post_ = 0;      // slot of the next receive to post
  std::uint32_t next_control_ = 0;

  Error cause_;
  bool abandoned_ = false;
  bool dirty_ = false;
  bool fresh_input_ = false;  // since the last on_readable
  bool wants_writable_ = false;
  bool end_told_ = false;  // on_readable ran after the end
  Clock::time_point next_keepalive_{};
  Clock::time_point linger_until_{};

  Listener* listener_ = nullptr;
  ConnectOpPtr connect_op_;
  TransferOpPtr read_op_;
  TransferOpPtr write_op_;
  CallbackSlot readable_callback_;
  CallbackSlot writable_callback_;
  Endpoint local_;
  Endpoint remote_;
  ConnectionStats stats_;
};

}  // namespace weir::rdma

// One connection of Valkey over RDMA, client or server: the protocol and the queue pair it runs on.
//
// The protocol's order: receives are posted before connect or accept; once ESTABLISHED we announce our
// receive buffer without waiting for the peer; we write only into a buffer that the peer announced. How a
// connection begins and ends is in connection_life.hpp.
//
// Ownership: the Engine owns every Connection; a Stream holds a pointer until it calls abandon(). The queue
// pair and the registrations are released as soon as the connection has ended, the receive buffers only when
// the Stream is gone or has read them. Threading: the engine's thread. Time is passed in.
#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "rdma/device/device.hpp"
#include "rdma/device/memory_pool.hpp"
#include "rdma/device/peer_right.hpp"
#include "rdma/engine/callback_slot.hpp"
#include "rdma/engine/connection_life.hpp"
#include "rdma/engine/io_op.hpp"
#include "rdma/settings.hpp"
#include "rdma/stream/receive_size.hpp"
#include "rdma/stream/receive_window.hpp"
#include "rdma/stream/send_queue.hpp"
#include "rdma/stream/send_window.hpp"

namespace weir::rdma {

class Connection;

// A waiting read or write: transfer() moves what can be moved now and returns how much.
class TransferOp : public IoOp<std::error_code, std::size_t> {
 public:
  virtual std::size_t transfer(Connection&) = 0;

 protected:
  ~TransferOp() = default;
};
using TransferOpPtr = std::unique_ptr<TransferOp, DestroyOp>;

struct ConnectionStats {
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t immediates = 0;     // WRITE_WITH_IMM received
  std::uint64_t writes = 0;         // WRITE_WITH_IMM posted
  std::uint64_t uncopied = 0;       // of these, sent from the owner's memory
  std::uint64_t announcements = 0;  // of our buffers
  std::uint64_t writer_stalls = 0;  // a write took fewer bytes than offered
};

class Engine;

class Connection final : public ConnectionLife {
 public:
  using Callback = CallbackSlot::Callback;
  using Owner = std::shared_ptr<const void>;  // of bytes that the device reads later

  // Makes a connection in that engine, which owns it.
  static Result<Connection*> make(Engine& engine, Side side, const StreamSettings& settings);
  Connection(ConnectionHost& engine, std::uint64_t tag, Side side, const StreamSettings& settings);
  ~Connection() override;

  // Data, for Stream; documented there.
  std::span<const std::byte> readable() const;
  void consume(std::size_t bytes);
  std::size_t write(std::span<const asio::const_buffer> buffers, const Owner& owner = nullptr);
  bool can_read() const { return window_.readable().bytes > 0; }

  void wait_read(TransferOpPtr op) { read_op_ = std::move(op); }
  void wait_write(TransferOpPtr op) { write_op_ = std::move(op); }
  bool reading() const { return read_op_ != nullptr; }
  bool writing() const { return write_op_ != nullptr; }
  void cancel_read();
  void cancel_write();
  void on_readable(Callback callback);
  void on_writable(Callback callback);

  // Called by the engine.
  void on_completion(const ibv_wc& completion) override;
  void on_tick(Clock::time_point now) override;
  void notify() override;
  void destroy_ops() override;

  const ConnectionStats& stats() const { return stats_; }
  // The peer has announced a buffer: it speaks the protocol, and can be answered.
  bool announced_to_us() const { return announced_to_us_; }

 private:
  static constexpr std::uint32_t max_receive_batch = 64;

  struct ReceiveBuffer {
    MemoryPool::Block block;
    PeerRight right;  // to write it
  };

  Result<void> prepare() override;
  void on_established() override;
  void on_abandoned() override;
  bool drained() override;
  void revoke_rights() override;
  void release_resources() override;
  void release_unread() override;
  Error explain(const ibv_wc& completion) const override;
  Result<void> take_buffer(ReceiveBuffer& buffer);
  Result<void> post_receives(std::uint32_t count);
  void announce_if_due();
  bool grant(PeerRight& right);
  void send_control(const ControlMessage& message);
  void on_receive(const ibv_wc& completion);
  void on_send_done();
  void on_control(std::span<const std::byte> bytes);
  void replenish();
  enum class Source { work_request, staging, owner };  // where the device reads the bytes from
  class Gather;
  bool write_piece(Gather& gather, const Owner& owner);
  bool post_data(std::span<ibv_sge> pieces, Source source);
  void let_go_of_owners();
  void notify_reader();
  void notify_writer();
  bool can_write() const;
  std::uint32_t queue_entries() const;
  std::byte* receive_slot(std::uint32_t index) const;

  const StreamSettings settings_;
  MemoryPool::Block control_;  // receive slots, then send slots, of one control message each
  MemoryPool::Block staging_;
  std::array<ReceiveBuffer, ReceiveWindow::buffers> receive_buffers_;
  std::uint32_t control_lkey_ = 0;
  std::uint32_t staging_lkey_ = 0;
  std::uint32_t max_pieces_ = 1;

  ReceiveWindow window_;
  ReceiveSize receive_size_;
  std::uint64_t immediates_before_ = 0;  // the last announcement
  SendWindow peer_window_;
  SendQueue send_queue_;
  struct Kept {
    std::uint64_t until;  // so many requests of the send queue are done
    Owner owner;
  };
  std::deque<Kept> kept_;
  std::uint32_t next_receive_ = 0;   // slot that the next receive completion belongs to
  std::uint32_t used_receives_ = 0;  // completed and not yet posted again
  std::uint32_t next_post_ = 0;      // slot of the next receive to post
  std::uint32_t next_control_ = 0;

  bool fresh_input_ = false;  // since the last on_readable
  bool wants_writable_ = false;
  bool end_told_ = false;  // on_readable ran after the end
  bool announced_to_us_ = false;
  Clock::time_point next_keepalive_{};

  TransferOpPtr read_op_;
  TransferOpPtr write_op_;
  CallbackSlot readable_callback_;
  CallbackSlot writable_callback_;
  ConnectionStats stats_;
};

}  // namespace weir::rdma

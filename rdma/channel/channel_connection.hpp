// One channel: messages, window and rendezvous on a queue pair (docs/decisions/0008; channel_wire.hpp).
//
// Sending (channel_send.cpp): a message becomes a record in a frame. While there is window and room in the
// queue, a frame goes out at once with one record in it; otherwise records gather in the open frame, and
// messages that do not fit there wait. Receiving (channel_receive.cpp): frames are taken apart in order into
// messages that are ready, being put together, or still to be fetched; the application gets them in that
// order. Both ends return credits on whatever they send next.
//
// Ownership and threading: as ConnectionLife.
#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "rdma/channel/channel_books.hpp"
#include "rdma/channel/channel_memory.hpp"
#include "rdma/channel/channel_wire.hpp"
#include "rdma/channel_settings.hpp"
#include "rdma/engine/callback_slot.hpp"
#include "rdma/engine/connection_life.hpp"

namespace weir::rdma {

class Engine;

// A waiting send. The pieces stay valid until it completes.
class SendOp : public IoOp<std::error_code> {
 public:
  virtual std::span<const asio::const_buffer> pieces() const = 0;

 protected:
  ~SendOp() = default;
};
using SendOpPtr = std::unique_ptr<SendOp, DestroyOp>;
using ReceiveOpPtr = IoOpPtr<std::error_code, Message>;

class ChannelConnection final : public ConnectionLife, public BlockUser {
 public:
  using Callback = CallbackSlot::Callback;
  enum class Sent { taken, later, ended, too_long };

  // Makes a connection in that engine, which owns it.
  static Result<ChannelConnection*> make(Engine& engine, Side side, const ChannelSettings& settings);
  ChannelConnection(ConnectionHost& engine, std::uint64_t tag, Side side, const ChannelSettings& settings);
  ~ChannelConnection() override;

  // For Channel; documented there.
  Sent send(std::span<const asio::const_buffer> message);
  Sent send(Buffer& message);
  // The pieces stay valid; returns `later` if that is faster.
  Sent send_or_wait(std::span<const asio::const_buffer> message);
  std::size_t send_some(asio::const_buffer rest);
  void wait_send(SendOpPtr op, Buffer buffer);  // after a send() that said later; in order
  void cancel_sends();
  void cancel_send(const SendOp* op);
  std::optional<Message> receive();
  bool can_receive() const {
    return !inbound_.empty() && inbound_.front().state == Inbound::State::ready &&
           !inbound_.front().is_part();
  }
  void wait_receive(ReceiveOpPtr op) { receive_op_ = std::move(op); }
  bool receiving() const { return receive_op_ != nullptr; }
  void cancel_receive();
  void on_readable(Callback callback);
  void on_writable(Callback callback);
  void cork() { ++corks_; }
  void uncork();
  Result<Buffer> allocate(std::size_t bytes);
  Buffer allocate_spare(std::size_t bytes);
  Buffer share(const Message& message);
  Buffer share(const Buffer& buffer, std::size_t bytes);
  void shrink() { store_ ? store_->shrink() : void(); }
  const ChannelCounters& counters() const { return counters_; }
  ChannelMemory memory() const;
  std::size_t peer_max_message() const { return peer_.max_message; }
  std::chrono::microseconds device_rnr_wait() const {
    return id_ ? id_.rnr_wait() : std::chrono::microseconds(0);
  }

  // BlockUser
  void on_let_go() override;
  void on_shared_receive(const ibv_wc& completion, std::unique_ptr<ChannelBlock> block) override;

  // Called by the engine.
  void on_completion(const ibv_wc& completion) override;
  void on_tick(Clock::time_point now) override;
  void notify() override;
  void destroy_ops() override;

 private:
  // What a work request keeps alive.
  struct Posted {
    BlockRef block;
    bool staged = false;  // counts against send_blocks
    bool fetch = false;   // a READ
  };
  // A message on its way to the application.
  struct Inbound {
    enum class State : std::uint8_t { ready, offered, fetching };
    State state = State::ready;
    BlockRef block;
    std::span<const std::byte> bytes;  // all of the message, but in a part that is not its last
    channel_wire::Offer offer{};

    bool is_part() const { return !offer.last(); }
  };
  // A message that waits to be sent: one of an operation, or one already taken.
  struct Outbound {
    SendOpPtr op;
    Buffer buffer;
    std::size_t sent = 0;  // bytes of a split message already sent
  };
  // The open frame, in which records gather.
  struct OpenFrame {
    BlockRef block;
    std::size_t used = 0;
  };

  Result<void> prepare() override;
  std::uint8_t read_depth() const override { return settings_.rendezvous_depth; }
  // A peer that respects the window never runs out of our receives, unless we share them with other channels.
  std::uint8_t rnr_retries() const override { return settings_.shared_receives ? 7 : 0; }
  std::optional<std::chrono::microseconds> rnr_wait() const override {
    return settings_.shared_receives ? std::optional(settings_.rnr_wait) : std::nullopt;
  }
  std::span<const std::byte> greeting() const override { return greeting_; }
  Result<void> greeted(std::span<const std::byte> bytes) override;
  Device::Queue* queue_of_sends() const override { return send_cq_; }
  void on_established() override;
  void on_abandoned() override;
  bool drained() override;
  void before_queue_pair_goes() override;
  void revoke_rights() override;
  void release_resources() override;
  void release_unread() override;
  Error explain(const ibv_wc& completion) const override;

  std::uint32_t send_depth() const;
  std::uint32_t offers_allowed() const;

  // channel_send.cpp
  bool fits_frame(std::size_t bytes) const;
  bool by_rendezvous(std::size_t bytes) const;
  bool can_post() const;
  bool stalled();
  BlockRef stage();
  template <class Write>
  bool place(std::size_t bytes, Write write);
  bool place_message(std::span<const asio::const_buffer> message, std::size_t bytes);
  bool place_buffer(Buffer& buffer);
  channel_wire::Offer next_part(std::size_t total, std::size_t sent) const;
  bool place_offer(BlockRef& block, channel_wire::Offer offer);
  bool offer_copy(std::span<const asio::const_buffer> pieces, std::size_t from, channel_wire::Offer offer);
  bool offer_parts(Outbound& message, std::span<const asio::const_buffer> pieces, std::size_t bytes);
  bool send_parts(Outbound& message, std::span<const asio::const_buffer> pieces, std::size_t bytes);
  bool advance(Outbound& message);
  void pump();
  bool flush_open(bool last);
  bool post_frame(std::span<const std::byte> bytes, Posted keep, std::uint32_t lkey, bool last);
  bool post(ibv_send_wr& wr, Posted keep, bool signal);
  std::uint32_t next_immediate(channel_wire::Immediate::Kind kind);
  void acknowledge();
  void post_probe();
  void on_send_done();

  // channel_receive.cpp
  void on_receive(const ibv_wc& completion);
  void on_received(const ibv_wc& completion, BlockRef block);
  void on_frame(BlockRef block, std::size_t bytes);
  Result<void> on_record(const BlockRef& block, const channel_wire::Record& record);
  Result<void> on_first(const channel_wire::FirstPart& part);
  Result<void> on_next(const channel_wire::NextPart& part);
  Result<void> on_offer(const channel_wire::Offer& offer);
  void deliver(BlockRef block, std::span<const std::byte> bytes);
  Result<void> post_receive(BlockRef block);
  void replenish();
  void start_fetches();
  void on_fetched();
  void drop_fetched_parts();

  // channel_connection.cpp
  void notify_reader();
  void notify_writer();

  const ChannelSettings settings_;
  channel_wire::Greeting peer_;
  std::array<std::byte, channel_wire::greeting_bytes> greeting_;
  BlockStore::Ptr store_;
  Device::Queue* send_cq_ = nullptr;
  SharedReceives* shared_ = nullptr;  // the device's; null: our own
  std::size_t frame_bytes_ = 0;       // the largest frame we may send: the smaller of both ends' block sizes

  // Sending.
  Credits credits_;
  SendRing<Posted> ring_;
  OpenFrame open_;
  std::deque<Outbound> waiting_;
  ReusedQueue<BlockRef> offered_;  // in order; offers that the peer has yet to fetch
  std::uint32_t staged_ = 0;
  std::size_t begun_total_ = 0,
              begun_sent_ = 0;     // progress of the message of which send_some() has taken a part
  std::uint32_t unsolicited_ = 0;  // frames since the last one that wakes the peer
  int corks_ = 0;
  bool wants_writable_ = false;

  // Receiving.
  Grants grants_;
  ReusedQueue<BlockRef> posted_;  // in order
  std::uint32_t missing_ = 0;     // data receives not yet posted again
  ReusedQueue<Inbound> inbound_;
  std::size_t unfetched_ = 0;                          // of inbound_, offered and not begun
  std::uint32_t parts_total_ = 0, parts_offered_ = 0;  // of the message whose parts are being offered
  BlockRef fetching_into_;                             // of the message whose parts are being fetched
  std::uint32_t fetching_ = 0;
  std::uint32_t fetched_due_ = 0;
  BlockRef assembly_;  // of a split message
  std::uint32_t assembly_total_ = 0, assembly_used_ = 0;
  ReceiveOpPtr receive_op_;
  CallbackSlot readable_callback_;
  CallbackSlot writable_callback_;
  bool fresh_input_ = false;
  bool end_told_ = false;

  Clock::time_point next_keepalive_{};
  ChannelCounters counters_;
};

}  // namespace weir::rdma

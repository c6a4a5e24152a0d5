// One end of a stream, without the types of its values: what came and waits to be read, and how much may
// still be sent. Reader, Writer and Stream (stream.hpp) put types on it.
//
// Backpressure is credit in bytes, an item costing its body and a header: the peer may begin an item while it
// has credit, and an item is no larger than the window, so two windows bound what waits here. Credit goes
// back when half a window has been read. A peer that sends beyond it broke the protocol. A writer waits for
// credit, and while too much waits on the connection as a whole.
//
// What was read from the wire before the stream ended is still handed out; then comes the end. Every wait
// ends: with an item, with room, with the end of the stream or its error, or with the cancellation of the
// coroutine that waits. Threading: the connection's thread.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <optional>

#include "rpc/codec/msgpack.hpp"
#include "rpc/error.hpp"
#include "rpc/link/frame_link.hpp"
#include "rpc/wire/body.hpp"
#include "rpc/wire/bytes.hpp"
#include "rpc/wire/frame.hpp"

namespace weir::rpc {

struct StreamLimits {
  std::uint32_t window_bytes = 1 << 20;       // that wait to be read here; at least stream_start_credit
  std::uint32_t item_bytes = 64 << 20;        // of what is written
  std::size_t max_decoded_bytes = SIZE_MAX;   // of memory that one that is read may become
  std::size_t max_waiting_bytes = 16u << 20;  // on the whole connection, before writers wait
};

// What one end writes is held against its own window: both ends of a program have the same.
constexpr std::uint32_t max_item_bytes(std::uint32_t window_bytes) {
  return std::max(window_bytes, static_cast<std::uint32_t>(stream_start_credit));
}

inline FrameLimits with_items(FrameLimits limits, std::uint32_t window_bytes) {
  limits.item_bytes = std::min(limits.item_bytes, max_item_bytes(window_bytes));
  return limits;
}

class StreamChannel final : public std::enable_shared_from_this<StreamChannel>, public WaitsForRoom {
 public:
  StreamChannel(asio::io_context& io, const StreamLimits& limits);
  ~StreamChannel();
  StreamChannel(const StreamChannel&) = delete;
  StreamChannel& operator=(const StreamChannel&) = delete;

  // From now on items go to the link, which must be let go of by finish() before it dies.
  void start(FrameLink& link, std::uint64_t id);
  // Ends both directions. A reader gets what has arrived, and then the cause;
  // end_of_stream is the regular cause.
  void finish(Error cause);
  bool finished() const { return finished_.has_value(); }

  // From the connection; false: the peer broke the protocol.
  bool on_item(std::span<const std::byte> body);
  bool on_credit(std::uint32_t bytes);
  bool on_peer_end();
  void on_link_progress() override;

  // An item waits: front() is its body, until pop().
  bool readable() const { return inbox_at_ < inbox_.size(); }
  std::span<const std::byte> front() const;
  void pop();
  // What one item may become, for its codec.
  DecodeRoom decoding() const { return {limits_.max_decoded_bytes}; }
  asio::awaitable<Result<void>> wait_readable();
  // An item could not be understood. The function may not care; its caller hears of it all the same.
  void spoil(Error why) { spoiled_ = std::move(why); }
  const std::optional<Error>& spoiled() const { return spoiled_; }
  // Reads no more: what comes is dropped, so that the peer need not wait.
  void discard();

  // Where to encode an item: encode, then end_write() and await its result. The link's queue if there is
  // room, else `held`, which waits for some.
  BodyPlace begin_write(Bytes& held, BodySize expected);
  asio::awaitable<Result<void>> end_write(Bytes held);
  void drop_write();  // instead: it could not be encoded
  void end_writes();  // of the client's direction
  asio::awaitable<Result<void>> wait_finished();

 private:
  struct Bell {
    explicit Bell(asio::io_context& io) : timer(io, asio::steady_timer::time_point::max()) {}
    void ring() {
      if (waiting > 0) timer.cancel();
    }
    asio::steady_timer timer;
    int waiting = 0;
  };

  bool has_room();
  asio::awaitable<Result<void>> write_held(Bytes held);
  Result<void> end_item(std::size_t begin);
  void consumed(std::uint64_t bytes);
  void grant();
  std::optional<Error> write_error() const;
  static asio::awaitable<Result<void>> wait(Bell& bell);

  const StreamLimits limits_;
  FrameLink* link_ = nullptr;
  std::uint64_t id_ = 0;
  std::optional<Error> finished_;
  std::optional<Error> spoiled_;

  Bytes inbox_;  // of each item its length, then its body
  std::size_t inbox_at_ = 0;
  std::size_t counted_ = 0;  // of it, in the link's stream_bytes_
  std::int64_t may_come_ = stream_start_credit;
  std::uint64_t consumed_ = 0;  // and not yet granted again
  bool peer_ended_ = false;
  bool discarding_ = false;

  std::int64_t may_go_ = stream_start_credit;
  std::optional<std::size_t> writing_;  // an item is being encoded in the link's queue, beginning there
  bool writes_ended_ = false;
  bool starved_ = false;  // the link knows that we wait for room

  Bell arrival_;
  Bell room_;
  Bell end_;
};

}  // namespace weir::rpc

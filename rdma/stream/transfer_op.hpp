// A read or a write of a stream: at once as far as it goes, or stored for one completion handler and run from
// the engine's poll handler (engine/io_op.hpp).
#pragma once

#include <array>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/buffer.hpp>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

#include "rdma/engine.hpp"
#include "rdma/engine/io_op.hpp"
#include "rdma/stream/connection.hpp"

namespace weir::rdma {

template <class MutableBufferSequence>
std::size_t read_from(Connection& connection, const MutableBufferSequence& buffers) {
  std::size_t total = 0;
  auto at = asio::buffer_sequence_begin(buffers);
  const auto end = asio::buffer_sequence_end(buffers);
  for (; at != end; ++at) {
    asio::mutable_buffer into(*at);
    while (into.size() > 0) {
      const std::span<const std::byte> from = connection.readable();
      if (from.empty()) return total;
      const std::size_t bytes = asio::buffer_copy(into, asio::const_buffer(from.data(), from.size()));
      connection.consume(bytes);
      into += bytes;
      total += bytes;
    }
  }
  return total;
}

template <class ConstBufferSequence>
std::size_t write_to(Connection& connection, const ConstBufferSequence& buffers) {
  std::array<asio::const_buffer, 16> pieces;  // more than that wait for the next call, as with writev
  std::size_t used = 0;
  auto at = asio::buffer_sequence_begin(buffers);
  const auto end = asio::buffer_sequence_end(buffers);
  for (; at != end && used < pieces.size(); ++at)
    if (asio::const_buffer piece(*at); piece.size() > 0) pieces[used++] = piece;
  return connection.write(std::span(pieces).first(used));
}

// A transfer that waits: `move` is read_from or write_to.
template <class Buffers, std::size_t (*move)(Connection&, const Buffers&), class Handler>
class WaitingTransfer final : public HandlerOp<TransferOp, Handler, std::error_code, std::size_t> {
 public:
  WaitingTransfer(Handler handler, const asio::io_context::executor_type& io, Buffers buffers)
      : HandlerOp<TransferOp, Handler, std::error_code, std::size_t>(std::move(handler), io),
        buffers_(std::move(buffers)) {}
  std::size_t transfer(Connection& connection) override { return move(connection, buffers_); }

 private:
  void release(Handler& handler) override { free_op(this, handler); }
  Buffers buffers_;
};

// Leaves a transfer that cannot begin yet with its connection, in a way that it can be cancelled.
template <auto move, void (Connection::*wait)(TransferOpPtr), void (Connection::*cancel)(), class Handler,
          class Buffers>
void transfer_later(Engine& engine, Connection& connection, Handler&& handler, const Buffers& buffers) {
  using H = std::decay_t<Handler>;
  auto slot = asio::get_associated_cancellation_slot(handler);
  using Op = WaitingTransfer<Buffers, move, H>;
  (connection.*
   wait)(TransferOpPtr(make_op<Op>(H(std::forward<Handler>(handler)), engine.io().get_executor(), buffers)));
  if (slot.is_connected())
    slot.assign([to = MaybeGone(engine, connection)](asio::cancellation_type) {
      to.if_there([](Connection& there) { (there.*cancel)(); });
    });
}

}  // namespace weir::rdma

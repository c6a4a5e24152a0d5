// The templates behind stream.hpp: a read, a write or a connect for one completion handler. Included by it.
//
// An operation that can finish at once is posted without being stored; one that must wait is stored in its
// handler's memory and run from the engine's poll handler (io_op.hpp).
#pragma once

#include <array>
#include <type_traits>

#include "rdma/stream.hpp"

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
  WaitingTransfer(Handler handler, const Stream::executor_type& io, Buffers buffers)
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

struct Stream::StartRead {
  using executor_type = Stream::executor_type;
  Stream* stream;
  executor_type get_executor() const noexcept { return stream->get_executor(); }

  template <class Handler, class Buffers>
  void operator()(Handler&& handler, const Buffers& buffers) const {
    using H = std::decay_t<Handler>;
    Connection* connection = stream->connection_;
    if (connection == nullptr || connection->reading())
      return post_completion(H(std::forward<Handler>(handler)), get_executor(),
                             stream->transfer_error(connection != nullptr), std::size_t{0});
    if (asio::buffer_size(buffers) == 0 || connection->can_read() || connection->ended()) {
      const std::size_t bytes = read_from(*connection, buffers);
      const bool at_end = bytes == 0 && asio::buffer_size(buffers) > 0;
      return post_completion(H(std::forward<Handler>(handler)), get_executor(),
                             at_end ? connection->end_cause().code : std::error_code(), bytes);
    }
    transfer_later<read_from<Buffers>, &Connection::wait_read, &Connection::cancel_read>(
        *stream->engine_, *connection, std::forward<Handler>(handler), buffers);
  }
};

struct Stream::StartWrite {
  using executor_type = Stream::executor_type;
  Stream* stream;
  executor_type get_executor() const noexcept { return stream->get_executor(); }

  template <class Handler, class Buffers>
  void operator()(Handler&& handler, const Buffers& buffers) const {
    using H = std::decay_t<Handler>;
    Connection* connection = stream->connection_;
    if (connection == nullptr || connection->writing())
      return post_completion(H(std::forward<Handler>(handler)), get_executor(),
                             stream->transfer_error(connection != nullptr), std::size_t{0});
    const std::size_t bytes = write_to(*connection, buffers);
    if (bytes > 0 || asio::buffer_size(buffers) == 0 || connection->ended())
      return post_completion(
          H(std::forward<Handler>(handler)), get_executor(),
          bytes > 0 || !connection->ended() ? std::error_code() : connection->end_cause().code, bytes);
    transfer_later<write_to<Buffers>, &Connection::wait_write, &Connection::cancel_write>(
        *stream->engine_, *connection, std::forward<Handler>(handler), buffers);
  }
};

template <class Handler>
class ConnectOp final : public HandlerOp<IoOp<std::error_code>, Handler, std::error_code> {
 public:
  using HandlerOp<IoOp<std::error_code>, Handler, std::error_code>::HandlerOp;

 private:
  void release(Handler& handler) override { free_op(this, handler); }
};

struct StartConnect {
  using executor_type = Stream::executor_type;
  Stream* stream;
  executor_type get_executor() const noexcept { return stream->get_executor(); }

  template <class Handler>
  void operator()(Handler&& handler, const Endpoint& peer, const StreamSettings& settings) const {
    using H = std::decay_t<Handler>;
    if (stream->connection_ != nullptr)
      return post_completion(H(std::forward<Handler>(handler)), get_executor(),
                             std::error_code(asio::error::already_open));
    Result<Connection*> connection = stream->engine_->make_connection(ConnectionLife::Side::client, settings);
    if (!connection) {
      stream->never_connected_ = connection.error();
      return post_completion(H(std::forward<Handler>(handler)), get_executor(), connection.error().code);
    }
    stream->connection_ = *connection;
    auto slot = asio::get_associated_cancellation_slot(handler);
    (*connection)
        ->start_connect(
            peer, ConnectOpPtr(make_op<ConnectOp<H>>(H(std::forward<Handler>(handler)), get_executor())));
    if (slot.is_connected())
      slot.assign([to = MaybeGone(*stream->engine_, **connection)](asio::cancellation_type) {
        to.if_there([](Connection& there) { there.cancel_connect(); });
      });
  }
};

template <class MutableBufferSequence, class ReadToken>
auto Stream::async_read_some(const MutableBufferSequence& buffers, ReadToken&& token) {
  return asio::async_initiate<ReadToken, void(std::error_code, std::size_t)>(StartRead{this}, token, buffers);
}

template <class ConstBufferSequence, class WriteToken>
auto Stream::async_write_some(const ConstBufferSequence& buffers, WriteToken&& token) {
  return asio::async_initiate<WriteToken, void(std::error_code, std::size_t)>(StartWrite{this}, token,
                                                                              buffers);
}

template <class Token>
auto async_connect(Stream& stream, const Endpoint& peer, const StreamSettings& settings, Token&& token) {
  return asio::async_initiate<Token, void(std::error_code)>(StartConnect{&stream}, token, peer, settings);
}

}  // namespace weir::rdma

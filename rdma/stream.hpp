// A stream of bytes over RDMA, speaking the Valkey-over-RDMA protocol.
//
// Two ways to use one:
//   As Asio does: async_read_some and async_write_some with any completion token; it models AsyncReadStream
//   and AsyncWriteStream, so asio::async_read, asio::ssl::stream<rdma::Stream> and the like work. As a server
//   of small requests does, without an allocation or a trip through the scheduler: readable() and consume()
//   look into the receive buffer itself, try_write() hands bytes to the device before it returns, and the
//   callbacks say when to look again.
//
// The memory behind readable() stays writable by the peer: a careful reader copies what it must trust twice.
// What the peer sent before it closed is read first, then the end: asio::error::eof or the error (error.hpp).
//
// Ownership: movable; destroying or closing it lets bytes already taken reach the peer (at most `linger`),
// then disconnects. An open stream keeps io_context::run() from returning. Threading: the engine's thread
// only.
#pragma once

#include <asio/async_result.hpp>
#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

#include "rdma/engine.hpp"
#include "rdma/engine/io_op.hpp"
#include "rdma/stream/connection.hpp"
#include "rdma/stream/transfer_op.hpp"

namespace weir::rdma {

struct StartConnect;

template <class Connected, class Life>
class BasicAcceptor;

class Stream {
 public:
  using executor_type = asio::io_context::executor_type;
  using lowest_layer_type = Stream;
  using Callback = Connection::Callback;

  explicit Stream(Engine& engine) : engine_(&engine) {}
  Stream(Stream&& other) noexcept
      : engine_(other.engine_),
        connection_(std::exchange(other.connection_, nullptr)),
        never_connected_(std::move(other.never_connected_)) {}
  Stream& operator=(Stream&& other) noexcept {
    if (this == &other) return *this;
    close();
    engine_ = other.engine_;
    connection_ = std::exchange(other.connection_, nullptr);
    never_connected_ = std::move(other.never_connected_);
    return *this;
  }
  ~Stream() { close(); }

  executor_type get_executor() const noexcept { return engine_->io().get_executor(); }
  lowest_layer_type& lowest_layer() noexcept { return *this; }
  const lowest_layer_type& lowest_layer() const noexcept { return *this; }
  Engine& engine() const { return *engine_; }

  // False before a connect was started and after close().
  bool is_open() const { return connection_ != nullptr; }
  // Waiting operations end with operation_aborted.
  void close();
  void close(std::error_code& never) {
    never.clear();
    close();
  }
  void cancel();
  Endpoint local_endpoint() const { return connection_ != nullptr ? connection_->local() : Endpoint(); }
  Endpoint remote_endpoint() const { return connection_ != nullptr ? connection_->remote() : Endpoint(); }
  // Whether the peer has announced a buffer that can be written: the first thing that a peer which speaks the
  // protocol does.
  bool peer_announced() const { return connection_ != nullptr && connection_->announced_to_us(); }
  // Why the stream ended, as a sentence; code is empty while it has not ended.
  const Error& error() const;
  ConnectionStats stats() const { return connection_ != nullptr ? connection_->stats() : ConnectionStats(); }

  // --- without Asio

  // Bytes received and not yet consumed, as far as they are contiguous: empty if there are none, and possibly
  // not all of them where a receive buffer ends (the rest is there after consume()). Valid until consume() or
  // close().
  std::span<const std::byte> readable() const {
    return connection_ != nullptr ? connection_->readable() : std::span<const std::byte>();
  }
  // At most readable().size().
  void consume(std::size_t bytes) {
    if (connection_ != nullptr) connection_->consume(bytes);
  }
  // Takes bytes from the front of `buffers` and returns how many; the buffers may be reused at once. Fewer
  // than offered, possibly 0: the peer's buffer or the send queue is full, and on_writable will run. Also 0
  // after the end.
  std::size_t try_write(std::span<const asio::const_buffer> buffers) {
    return connection_ != nullptr ? connection_->write(buffers) : 0;
  }
  std::size_t try_write(asio::const_buffer buffer) { return try_write(std::span(&buffer, 1)); }
  // The same for bytes that `owner` holds and that nobody changes: large ones are not copied if the device
  // can read them in place (StreamSettings::zero_copy_bytes), and `owner` is released once it has, also after
  // close(). Null: as above.
  std::size_t try_write(asio::const_buffer buffer, const Connection::Owner& owner) {
    return connection_ != nullptr ? connection_->write(std::span(&buffer, 1), owner) : 0;
  }
  // Set once nothing will follow what readable() holds.
  std::error_code end() const;
  // Runs after bytes arrived, once for a batch of them, and after the end; not again for bytes left
  // unconsumed. If bytes are already there when it is installed, it runs soon. It may close or destroy the
  // stream, or install another callback.
  void on_readable(Callback callback);
  // Runs once, when there is room again after a try_write that took fewer bytes than offered. The end is
  // reported by on_readable only.
  void on_writable(Callback callback);

  // --- with Asio: at most one read and one write at a time

  template <class MutableBufferSequence, class ReadToken>
  auto async_read_some(const MutableBufferSequence& buffers, ReadToken&& token);
  template <class ConstBufferSequence, class WriteToken>
  auto async_write_some(const ConstBufferSequence& buffers, WriteToken&& token);

 private:
  friend class BasicAcceptor<Stream, Connection>;
  friend struct StartConnect;

  struct StartRead;
  struct StartWrite;

  Stream(Engine& engine, Connection& accepted) : engine_(&engine), connection_(&accepted) {}
  std::error_code transfer_error(bool busy) const;

  Engine* engine_;
  Connection* connection_ = nullptr;                               // the engine's; ours to abandon
  Error never_connected_{Errc::closed, "the stream is not open"};  // error() without a connection
};

// Connects `stream`, which must not be open, as the protocol's client. Completes with void(std::error_code)
// when the connection is established; bytes can go out once the peer has announced its buffer, so a first
// try_write may take 0.
template <class Token>
auto async_connect(Stream& stream, const Endpoint& peer, const StreamSettings& settings, Token&& token);

// --- the operations of one completion handler each. One that can finish at once is posted without being
// stored; one that must wait is stored in its handler's memory (engine/io_op.hpp).

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
    Result<Connection*> connection =
        Connection::make(*stream->engine_, ConnectionLife::Side::client, settings);
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

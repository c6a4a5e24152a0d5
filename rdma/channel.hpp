// Messages over one RDMA connection, whole and in order, in registered memory.
//
// Sending copies a message into registered memory, or takes a Buffer from allocate() as it is. A send
// completes when the message was handed to the device or to the channel's bounded queue, not when the peer
// has it. Receiving yields a Message: a view of registered memory that nobody else writes, which belongs to
// the application until it lets go. A message up to the block size travels in one SEND; a longer one is split
// over several SENDs and reassembled or, from `rendezvous_bytes` on, offered to the peer, which fetches it
// with one RDMA READ.
//
// Flow control: the peer sends no more than it was granted, so a slow reader makes the sender wait
// (async_send does not complete, try_send returns false) and memory is bounded on both ends
// (channel_settings.hpp). An application that holds Messages for long stalls the sender once `held_bytes` of
// them are out.
//
// There are two ways to use a channel, as with Stream: with completion tokens, or with try_send(),
// try_receive() and the two callbacks, which run straight from the engine's poll round.
//
// Errors: error_code of error.hpp; error() has the sentence. Whatever the peer sent before it closed is
// received first, then asio::error::eof or the cause. Whatever a peer sends, it can end only its own channel.
// When a channel ends, every waiting operation completes with that error, and messages that were not yet
// taken are not sent.
//
// Ownership: movable. Destroying or closing a channel lets messages already taken reach the peer (for at most
// `linger`), then disconnects. Messages and Buffers may outlive their channel, but not the io_context; a
// Buffer may be sent only by the channel that allocated it. Threading: the engine's thread only, for Messages
// and Buffers too.
#pragma once

#include <asio/async_result.hpp>
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "rdma/channel/channel_connection.hpp"
#include "rdma/channel/channel_memory.hpp"
#include "rdma/channel/message_op.hpp"
#include "rdma/channel_settings.hpp"
#include "rdma/engine.hpp"
#include "rdma/engine/basic_acceptor.hpp"

namespace weir::rdma {

class Channel {
 public:
  using executor_type = asio::io_context::executor_type;
  using Callback = ChannelConnection::Callback;

  explicit Channel(Engine& engine) : engine_(&engine) {}
  Channel(Channel&& other) noexcept
      : engine_(other.engine_),
        connection_(std::exchange(other.connection_, nullptr)),
        never_connected_(std::move(other.never_connected_)) {}
  Channel& operator=(Channel&& other) noexcept {
    if (this == &other) return *this;
    close();
    engine_ = other.engine_;
    connection_ = std::exchange(other.connection_, nullptr);
    never_connected_ = std::move(other.never_connected_);
    return *this;
  }
  ~Channel() { close(); }

  executor_type get_executor() const noexcept { return engine_->io().get_executor(); }
  Engine& engine() const { return *engine_; }

  // False before a connect was started and after close().
  bool is_open() const { return connection_ != nullptr; }
  // Waiting operations end with operation_aborted.
  void close();
  void cancel();
  Endpoint local_endpoint() const { return connection_ != nullptr ? connection_->local() : Endpoint(); }
  Endpoint remote_endpoint() const { return connection_ != nullptr ? connection_->remote() : Endpoint(); }
  // Why the channel ended, as a sentence; code is empty while it has not.
  const Error& error() const { return connection_ != nullptr ? connection_->end_cause() : never_connected_; }
  // Set once nothing will follow what try_receive() still yields.
  std::error_code end() const;

  // The longest message that the peer accepts; 0 while not connected.
  std::size_t max_message_bytes() const {
    return connection_ != nullptr ? connection_->peer_max_message() : 0;
  }
  ChannelCounters counters() const {
    return connection_ != nullptr ? connection_->counters() : ChannelCounters();
  }
  // How long the peer's device waits if it finds no receive of ours posted. Queried from our device, since
  // not every device accepts the setting. 0 while not connected.
  std::chrono::microseconds rnr_wait() const {
    return connection_ != nullptr ? connection_->device_rnr_wait() : std::chrono::microseconds(0);
  }
  // Registered memory held for this channel now, including the Messages and Buffers that its user holds.
  ChannelMemory memory() const { return connection_ != nullptr ? connection_->memory() : ChannelMemory(); }
  // Releases only the memory kept for reuse.
  void shrink();

  // Registered memory for a message of `bytes`, to be filled and sent without a copy. Errc::memory_limit at
  // the pool's cap, Errc::message_too_long.
  Result<Buffer> allocate(std::size_t bytes);
  // The same for a message that will be offered to the peer, for callers that can do without. Empty if half
  // of the pool is in use: the rest is for what channels need to make progress, and for shorter messages.
  Buffer allocate_spare(std::size_t bytes);

  // Forwards a received message without a copy: the same memory, which stays unchanged until the peer has it.
  // Empty if that is impossible because the message is another channel's or shares its block.
  Buffer share(const Message& message);
  // Likewise for the first `bytes` of a Buffer that its owner keeps and must not write to before the peer has
  // it. Also empty while a shorter part of it is being sent.
  Buffer share(const Buffer& buffer, std::size_t bytes);

  // --- without Asio

  // Takes the message, or returns false and takes nothing: the queue is full and on_writable will run, or the
  // channel ended, or no peer would accept it (longer than max_message_bytes()). The bytes may be reused at
  // once.
  bool try_send(std::span<const asio::const_buffer> message);
  bool try_send(asio::const_buffer message) { return try_send(std::span(&message, 1)); }
  bool try_send(Buffer& message);  // empty afterwards if it was taken
  // Takes as much of a message as there is room for, and returns how much. If that is less than all,
  // on_writable will run, and the whole rest must be the next thing sent.
  std::size_t try_send_some(asio::const_buffer rest);
  // The next message; nullopt if there is none now.
  std::optional<Message> try_receive();
  // Runs once for a batch of messages that arrived, and after the end. It may close the channel.
  void on_readable(Callback callback);
  // Runs once, when there is room again after try_send returned false. The end is reported by on_readable
  // only.
  void on_writable(Callback callback);
  // Between the two calls messages are merged as if the queue were full; uncork() sends what is left.
  void cork();
  void uncork();

  // --- with Asio: any number of concurrent sends, which go out in order; one receive

  // void(std::error_code). The bytes stay until it completes.
  template <class ConstBufferSequence, class Token>
    requires asio::is_const_buffer_sequence<ConstBufferSequence>::value
  auto async_send(const ConstBufferSequence& message, Token&& token);
  template <class Token>
  auto async_send(Buffer message, Token&& token);
  // void(std::error_code, Message)
  template <class Token>
  auto async_receive(Token&& token);

 private:
  friend class BasicAcceptor<Channel, ChannelConnection>;
  friend struct StartChannelConnect;
  struct StartSend;
  struct StartReceive;
  Channel(Engine& engine, ChannelConnection& accepted) : engine_(&engine), connection_(&accepted) {}

  Engine* engine_;
  ChannelConnection* connection_ = nullptr;                         // the engine's; ours to abandon
  Error never_connected_{Errc::closed, "the channel is not open"};  // error() without a connection
};

// Connects `channel`, which must not be open. Completes with void(std::error_code) once messages can be sent.
template <class Token>
auto async_connect(Channel& channel, const Endpoint& peer, const ChannelSettings& settings, Token&& token);

struct ChannelAcceptorSettings {
  ChannelSettings channel;
  std::uint32_t backlog = 511;  // channels that nobody has accepted yet; more are rejected
};

// Listens for channels and hands them out.
class ChannelAcceptor : public BasicAcceptor<Channel, ChannelConnection> {
 public:
  // Port 0 takes a free port; an IPv6 address listens for IPv6 only.
  static Result<ChannelAcceptor> listen(Engine& engine, const Endpoint& address,
                                        const ChannelAcceptorSettings& settings = {});

  // Takes turns receiving connections with the acceptor that gave the seat, which must be of the same kind.
  static Result<ChannelAcceptor> sit(std::shared_ptr<Seat> seat,
                                     const ChannelAcceptorSettings& settings = {});

 private:
  ChannelAcceptor(Engine& engine, std::shared_ptr<Arrivals> arrivals, std::unique_ptr<Listener> listener)
      : BasicAcceptor(engine, std::move(arrivals), std::move(listener)) {}
  ChannelAcceptor(std::shared_ptr<Seat> seat, std::shared_ptr<Arrivals> arrivals)
      : BasicAcceptor(std::move(seat), std::move(arrivals)) {}
};

// --- the operations of one completion handler each; see stream.hpp

struct Channel::StartSend {
  using executor_type = Channel::executor_type;
  using Sent = ChannelConnection::Sent;
  Channel* channel;
  executor_type get_executor() const noexcept { return channel->get_executor(); }

  template <class Handler>
  void operator()(Handler&& handler, FlatMessage message) const {
    const Sent sent =
        channel->connection_ != nullptr ? channel->connection_->send_or_wait(message.pieces()) : Sent::ended;
    finish(std::forward<Handler>(handler), sent, std::move(message), Buffer());
  }
  template <class Handler>
  void operator()(Handler&& handler, Buffer message) const {
    const Sent sent = channel->connection_ != nullptr ? channel->connection_->send(message) : Sent::ended;
    finish(std::forward<Handler>(handler), sent, FlatMessage(), std::move(message));
  }

 private:
  template <class Handler>
  void finish(Handler&& handler, Sent sent, FlatMessage message, Buffer buffer) const {
    using H = std::decay_t<Handler>;
    ChannelConnection* connection = channel->connection_;
    if (sent != Sent::later) {
      std::error_code failed;
      if (sent == Sent::too_long) failed = Errc::message_too_long;
      if (sent == Sent::ended)
        failed = connection != nullptr && connection->ended() ? connection->end_cause().code
                                                              : make_error_code(Errc::closed);
      return post_completion(H(std::forward<Handler>(handler)), get_executor(), failed);
    }
    auto slot = asio::get_associated_cancellation_slot(handler);
    SendOpPtr op(
        make_op<WaitingSend<H>>(H(std::forward<Handler>(handler)), get_executor(), std::move(message)));
    const SendOp* which = op.get();
    connection->wait_send(std::move(op), std::move(buffer));
    if (slot.is_connected())
      slot.assign([to = MaybeGone(*channel->engine_, *connection), which](asio::cancellation_type) {
        to.if_there([&](ChannelConnection& there) { there.cancel_send(which); });
      });
  }
};

struct Channel::StartReceive {
  using executor_type = Channel::executor_type;
  Channel* channel;
  executor_type get_executor() const noexcept { return channel->get_executor(); }

  template <class Handler>
  void operator()(Handler&& handler) const {
    using H = std::decay_t<Handler>;
    ChannelConnection* connection = channel->connection_;
    if (connection == nullptr || connection->receiving())
      return post_completion(H(std::forward<Handler>(handler)), get_executor(),
                             connection == nullptr ? make_error_code(Errc::closed)
                                                   : std::error_code(asio::error::already_started),
                             Message());
    if (std::optional<Message> message = connection->receive())
      return post_completion(H(std::forward<Handler>(handler)), get_executor(), std::error_code(),
                             std::move(*message));
    if (connection->ended())
      return post_completion(H(std::forward<Handler>(handler)), get_executor(), connection->end_cause().code,
                             Message());
    auto slot = asio::get_associated_cancellation_slot(handler);
    connection->wait_receive(
        ReceiveOpPtr(make_op<WaitingReceive<H>>(H(std::forward<Handler>(handler)), get_executor())));
    if (slot.is_connected())
      slot.assign([to = MaybeGone(*channel->engine_, *connection)](asio::cancellation_type) {
        to.if_there([](ChannelConnection& there) { there.cancel_receive(); });
      });
  }
};

template <class ConstBufferSequence, class Token>
  requires asio::is_const_buffer_sequence<ConstBufferSequence>::value
auto Channel::async_send(const ConstBufferSequence& message, Token&& token) {
  return asio::async_initiate<Token, void(std::error_code)>(StartSend{this}, token, FlatMessage(message));
}

template <class Token>
auto Channel::async_send(Buffer message, Token&& token) {
  return asio::async_initiate<Token, void(std::error_code)>(StartSend{this}, token, std::move(message));
}

template <class Token>
auto Channel::async_receive(Token&& token) {
  return asio::async_initiate<Token, void(std::error_code, Message)>(StartReceive{this}, token);
}

struct StartChannelConnect {
  using executor_type = Channel::executor_type;
  Channel* channel;
  executor_type get_executor() const noexcept { return channel->get_executor(); }

  template <class Handler>
  void operator()(Handler&& handler, const Endpoint& peer, const ChannelSettings& settings) const {
    using H = std::decay_t<Handler>;
    if (channel->connection_ != nullptr)
      return post_completion(H(std::forward<Handler>(handler)), get_executor(),
                             std::error_code(asio::error::already_open));
    Result<ChannelConnection*> connection =
        ChannelConnection::make(*channel->engine_, ConnectionLife::Side::client, settings);
    if (!connection) {
      channel->never_connected_ = connection.error();
      return post_completion(H(std::forward<Handler>(handler)), get_executor(), connection.error().code);
    }
    channel->connection_ = *connection;
    auto slot = asio::get_associated_cancellation_slot(handler);
    (*connection)
        ->start_connect(
            peer, ConnectOpPtr(make_op<ConnectOp<H>>(H(std::forward<Handler>(handler)), get_executor())));
    if (slot.is_connected())
      slot.assign([to = MaybeGone(*channel->engine_, **connection)](asio::cancellation_type) {
        to.if_there([](ChannelConnection& there) { there.cancel_connect(); });
      });
  }
};

template <class Token>
auto async_connect(Channel& channel, const Endpoint& peer, const ChannelSettings& settings, Token&& token) {
  return asio::async_initiate<Token, void(std::error_code)>(StartChannelConnect{&channel}, token, peer,
                                                            settings);
}

}  // namespace weir::rdma

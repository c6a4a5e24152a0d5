// The templates behind channel.hpp: a send, a receive, a connect or an accept for one completion handler.
// Included by it. An operation that can finish at once is posted without being stored.
#pragma once

#include <array>
#include <type_traits>
#include <vector>

#include "rdma/channel.hpp"
#include "rdma/stream/stream_ops.hpp"

namespace weir::rdma {

// A buffer sequence as a row, whatever it is: no allocation for up to 16.
class FlatMessage {
 public:
  FlatMessage() = default;
  template <class ConstBufferSequence>
  explicit FlatMessage(const ConstBufferSequence& buffers) {
    auto at = asio::buffer_sequence_begin(buffers);
    const auto end = asio::buffer_sequence_end(buffers);
    for (; at != end; ++at) {
      if (used_ < few_.size())
        few_[used_] = *at;
      else if (used_ == few_.size())
        many_.assign(few_.begin(), few_.end());
      if (used_ >= few_.size()) many_.push_back(*at);
      ++used_;
    }
  }
  std::span<const asio::const_buffer> pieces() const {
    return used_ > few_.size() ? std::span<const asio::const_buffer>(many_) : std::span(few_).first(used_);
  }

 private:
  std::array<asio::const_buffer, 16> few_;
  std::vector<asio::const_buffer> many_;
  std::size_t used_ = 0;
};

template <class Handler>
class WaitingSend final : public HandlerOp<SendOp, Handler, std::error_code> {
 public:
  WaitingSend(Handler handler, const Channel::executor_type& io, FlatMessage message)
      : HandlerOp<SendOp, Handler, std::error_code>(std::move(handler), io), message_(std::move(message)) {}
  std::span<const asio::const_buffer> pieces() const override { return message_.pieces(); }

 private:
  void release(Handler& handler) override { free_op(this, handler); }
  FlatMessage message_;
};

template <class Handler>
class WaitingReceive final
    : public HandlerOp<IoOp<std::error_code, Message>, Handler, std::error_code, Message> {
 public:
  using HandlerOp<IoOp<std::error_code, Message>, Handler, std::error_code, Message>::HandlerOp;

 private:
  void release(Handler& handler) override { free_op(this, handler); }
};

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
        channel->engine_->make_channel(ConnectionLife::Side::client, settings);
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

#include "rdma/channel.hpp"

namespace weir::rdma {

void Channel::close() {
  if (ChannelConnection* connection = std::exchange(connection_, nullptr); connection != nullptr)
    connection->abandon();
}

void Channel::cancel() {
  if (connection_ == nullptr) return;
  connection_->cancel_connect();
  connection_->cancel_receive();
  connection_->cancel_sends();
}

std::error_code Channel::end() const {
  if (connection_ == nullptr) return Errc::closed;
  return connection_->ended() ? connection_->end_cause().code : std::error_code();
}

void Channel::shrink() {
  if (connection_ != nullptr) connection_->shrink();
}

Result<Buffer> Channel::allocate(std::size_t bytes) {
  if (connection_ == nullptr) return fail(Errc::closed, "the channel is not open");
  return connection_->allocate(bytes);
}

Buffer Channel::allocate_spare(std::size_t bytes) {
  return connection_ != nullptr ? connection_->allocate_spare(bytes) : Buffer();
}

Buffer Channel::share(const Message& message) {
  return connection_ != nullptr ? connection_->share(message) : Buffer();
}

Buffer Channel::share(const Buffer& buffer, std::size_t bytes) {
  return connection_ != nullptr ? connection_->share(buffer, bytes) : Buffer();
}

bool Channel::try_send(std::span<const asio::const_buffer> message) {
  return connection_ != nullptr && connection_->send(message) == ChannelConnection::Sent::taken;
}

bool Channel::try_send(Buffer& message) {
  return connection_ != nullptr && connection_->send(message) == ChannelConnection::Sent::taken;
}

std::size_t Channel::try_send_some(asio::const_buffer rest) {
  return connection_ != nullptr ? connection_->send_some(rest) : 0;
}

std::optional<Message> Channel::try_receive() {
  return connection_ != nullptr ? connection_->receive() : std::nullopt;
}

void Channel::on_readable(Callback callback) {
  if (connection_ != nullptr) connection_->on_readable(std::move(callback));
}

void Channel::on_writable(Callback callback) {
  if (connection_ != nullptr) connection_->on_writable(std::move(callback));
}

void Channel::cork() {
  if (connection_ != nullptr) connection_->cork();
}

void Channel::uncork() {
  if (connection_ != nullptr) connection_->uncork();
}

namespace {
std::shared_ptr<Arrivals> make_arrivals(Engine& engine, const ChannelAcceptorSettings& settings) {
  return std::make_shared<Arrivals>(
      engine,
      [&engine, channel = settings.channel]() -> Result<ConnectionLife*> {
        return ChannelConnection::make(engine, ConnectionLife::Side::server, channel);
      },
      settings.backlog);
}
}  // namespace

Result<ChannelAcceptor> ChannelAcceptor::listen(Engine& engine, const Endpoint& address,
                                                const ChannelAcceptorSettings& settings) {
  if (Result<void> good = check(settings.channel); !good) return std::unexpected(good.error());
  auto arrivals = make_arrivals(engine, settings);
  auto listener = Listener::open(engine, address, arrivals);
  if (!listener) return std::unexpected(listener.error());
  return ChannelAcceptor(engine, std::move(arrivals), std::move(*listener));
}

Result<ChannelAcceptor> ChannelAcceptor::sit(std::shared_ptr<Seat> seat,
                                             const ChannelAcceptorSettings& settings) {
  if (Result<void> good = check(settings.channel); !good) return std::unexpected(good.error());
  auto arrivals = make_arrivals(seat->engine, settings);
  return ChannelAcceptor(std::move(seat), std::move(arrivals));
}

}  // namespace weir::rdma

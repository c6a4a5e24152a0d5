#include "tests/bystander/line.hpp"

#include <asio/compose.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/redirect_error.hpp>
#include <asio/ssl.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <map>
#include <stdexcept>
#include <utility>

#include "rdma/channel.hpp"
#include "rdma/provider.hpp"
#include "rdma/stream.hpp"
#include "rpc/address.hpp"

namespace weir::bystander {
namespace {

template <class Stream>
class StreamLine final : public Line {
 public:
  explicit StreamLine(Stream stream) : stream_(std::move(stream)) {}
  asio::awaitable<bool> write(std::string bytes) override {
    std::error_code failed;
    co_await asio::async_write(stream_, asio::buffer(bytes),
                               asio::redirect_error(asio::use_awaitable, failed));
    co_return !failed;
  }
  asio::awaitable<std::string> read() override {
    std::string bytes(64 << 10, 0);
    std::error_code failed;
    const std::size_t count = co_await stream_.async_read_some(
        asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, failed));
    bytes.resize(failed ? 0 : count);
    co_return bytes;
  }

 private:
  Stream stream_;
};

class ChannelLine final : public Line {
 public:
  explicit ChannelLine(rdma::Channel channel) : channel_(std::move(channel)) {}
  asio::awaitable<bool> write(std::string bytes) override {
    std::error_code failed;
    co_await channel_.async_send(asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, failed));
    co_return !failed;
  }
  asio::awaitable<std::string> read() override {
    std::error_code failed;
    const rdma::Message message =
        co_await channel_.async_receive(asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return std::string();
    const std::span<const std::byte> bytes = message.bytes();
    co_return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

 private:
  rdma::Channel channel_;
};

asio::ssl::context& trusting() {
  static asio::ssl::context context(asio::ssl::context::tls_client);
  return context;
}

// A stream that a slow client reads: as if the network delayed each of its steps.
template <class Stream>
class SlowStream {
 public:
  using lowest_layer_type = typename Stream::lowest_layer_type;
  using executor_type = typename Stream::executor_type;

  explicit SlowStream(Stream below)
      : below_(std::move(below)), delay_(std::make_unique<asio::steady_timer>(below_.get_executor())) {}
  executor_type get_executor() { return below_.get_executor(); }
  lowest_layer_type& lowest_layer() { return below_.lowest_layer(); }
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return asio::async_compose<Token, void(std::error_code, std::size_t)>(
        [this, buffers, state = Waits::not_yet](auto& self, std::error_code error = {},
                                                std::size_t count = 0) mutable {
          switch (std::exchange(state, state == Waits::not_yet ? Waits::for_time : Waits::for_bytes)) {
            case Waits::not_yet:
              delay_->expires_after(pause);
              return delay_->async_wait(std::move(self));
            case Waits::for_time:
              return below_.async_read_some(buffers, std::move(self));
            case Waits::for_bytes:
              return self.complete(error, count);
          }
        },
        token, below_);
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return below_.async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  static constexpr std::chrono::milliseconds pause{60};
  enum class Waits : std::uint8_t { not_yet, for_time, for_bytes };
  Stream below_;
  std::unique_ptr<asio::steady_timer> delay_;
};

template <class Stream>
asio::awaitable<LinePtr> shake_hands(Stream below) {
  asio::ssl::stream<Stream> stream(std::move(below), trusting());
  std::error_code failed;
  co_await stream.async_handshake(asio::ssl::stream_base::client,
                                  asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return nullptr;
  co_return std::make_unique<StreamLine<asio::ssl::stream<Stream>>>(std::move(stream));
}

// Thousands of connections a second that end in TIME_WAIT would use up the host's ports, so most end with a
// reset, and some normally.
template <class Socket>
void leave_ports(Socket& socket) {
  static unsigned number = 0;
  std::error_code ignored;
  if (++number % 16 != 0) socket.set_option(asio::socket_base::linger(true, 0), ignored);
}

template <class Socket>
asio::awaitable<LinePtr> dial_socket(asio::io_context& io, typename Socket::endpoint_type at, Tls tls,
                                     const typename Socket::endpoint_type* from = nullptr) {
  Socket socket(io);
  std::error_code failed;
  if (from) {
    socket.open(at.protocol());
    socket.bind(*from);
  }
  for (;;) {
    co_await socket.async_connect(at, asio::redirect_error(asio::use_awaitable, failed));
    // The queue of a unix socket's listener is full (EAGAIN, which Asio reports like this); TCP's connect
    // would wait.
    if (failed != asio::error::no_buffer_space) break;
    asio::steady_timer timer(io, std::chrono::milliseconds(1));
    co_await timer.async_wait(asio::use_awaitable);
  }
  if (failed) co_return nullptr;
  leave_ports(socket);
  if (tls == Tls::slowly) {
    SlowStream<Socket> slow(std::move(socket));
    co_return co_await shake_hands(std::move(slow));
  }
  if (tls == Tls::shake_hands) co_return co_await shake_hands(std::move(socket));
  co_return std::make_unique<StreamLine<Socket>>(std::move(socket));
}

asio::awaitable<LinePtr> dial_rdma(asio::io_context& io, rdma::Endpoint at, bool secure, bool messages) {
  rdma::Engine& engine = engine_of(io);
  std::error_code failed;
  if (messages) {
    rdma::Channel channel(engine);
    rdma::ChannelSettings settings;
    settings.rendezvous_bytes = 32 << 10;
    settings.max_message_bytes = 64 << 20;
    co_await rdma::async_connect(channel, at, settings, asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return nullptr;
    co_return std::make_unique<ChannelLine>(std::move(channel));
  }
  rdma::Stream stream(engine);
  const rdma::StreamSettings settings;
  co_await rdma::async_connect(stream, at, settings, asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return nullptr;
  if (secure) co_return co_await shake_hands(std::move(stream));
  co_return std::make_unique<StreamLine<rdma::Stream>>(std::move(stream));
}

}  // namespace

rdma::Engine& engine_of(asio::io_context& io) {
  // A new io_context may have the address of one that is gone.
  static std::map<asio::io_context*, rdma::Engine*> engines;
  if (asio::has_service<rdma::Engine>(io)) return *engines.at(&io);
  rdma::ProviderOptions options;
  options.choice = rdma::ProviderChoice::weir;
  auto provider = rdma::load_provider(options);
  if (!provider) throw std::runtime_error(provider.error().what);
  auto engine = rdma::Engine::open(io, *provider);
  if (!engine) throw std::runtime_error(engine.error().what);
  engines[&io] = *engine;
  return **engine;
}

asio::awaitable<LinePtr> dial(asio::io_context& io, Protocol protocol, std::string address, Tls tls,
                              const char* from) {
  const rpc::Result<rpc::Address> at = rpc::parse_address(address);
  if (!at) throw std::runtime_error(at.error().what);
  const Tls wanted = at->secure() ? tls : Tls::leave_out;
  if (at->scheme == rpc::Scheme::unix_socket) {
    const asio::local::stream_protocol::endpoint path(at->path);
    co_return co_await dial_socket<asio::local::stream_protocol::socket>(io, path, wanted);
  }
  const asio::ip::tcp::endpoint endpoint(asio::ip::make_address(at->host), at->port);
  if (at->scheme == rpc::Scheme::tcp || at->scheme == rpc::Scheme::tls) {
    if (from == nullptr) co_return co_await dial_socket<asio::ip::tcp::socket>(io, endpoint, wanted);
    const asio::ip::tcp::endpoint own(asio::ip::make_address(from), 0);
    co_return co_await dial_socket<asio::ip::tcp::socket>(io, endpoint, wanted, &own);
  }
  const bool messages = protocol == Protocol::rpc && at->scheme == rpc::Scheme::rdma;
  co_return co_await dial_rdma(io, endpoint, wanted != Tls::leave_out, messages);
}

}  // namespace weir::bystander

#include "kv/net/dialling.hpp"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "kv/net/socket_connection.hpp"
#include "kv/net/socket_listener.hpp"
#include "kv/net/tls_connection.hpp"
#include "transport/dial.hpp"
#include "transport/unix_socket.hpp"

namespace weir::kv {

namespace {

constexpr int link_keepalive_s = 60;

// Makes a connection from a connected TCP socket.
using Finish = std::function<Opened<std::unique_ptr<Connection>>(asio::ip::tcp::socket, TcpNames)>;

class TcpDialling final : public Dialling {
 public:
  TcpDialling(asio::io_context& io, const std::string& host, std::uint16_t port, Finish finish,
              Dialled dialled)
      : state_(std::make_shared<State>(io, std::move(finish), std::move(dialled))) {
    asio::co_spawn(io, attempt(state_, host, port), asio::detached);
  }
  ~TcpDialling() override {
    state_->dialled = nullptr;
    state_->resolver.cancel();
    asio::error_code ignored;
    state_->socket.close(ignored);
  }

 private:
  // Lives on while part of the attempt is still in progress.
  struct State {
    State(asio::io_context& io, Finish f, Dialled d)
        : finish(std::move(f)), resolver(io), socket(io), dialled(std::move(d)) {}

    Finish finish;
    asio::ip::tcp::resolver resolver;
    asio::ip::tcp::socket socket;
    Dialled dialled;  // empty: given up, or already called
  };

  static asio::awaitable<void> attempt(std::shared_ptr<State> state, std::string host, std::uint16_t port) {
    const std::error_code error =
        co_await transport::dial_tcp(state->resolver, state->socket, std::move(host), port);
    if (const Dialled dialled = std::exchange(state->dialled, nullptr))
      dialled(error ? std::unexpected(error.message()) : take_over(*state));
  }

  static Opened<std::unique_ptr<Connection>> take_over(State& state) {
    asio::error_code error;
    state.socket.native_non_blocking(true, error);
    if (error) return std::unexpected(error.message());
    tune_tcp(state.socket.native_handle(), link_keepalive_s);
    TcpNames names = tcp_names(state.socket.native_handle());
    return state.finish(std::move(state.socket), std::move(names));
  }

  std::shared_ptr<State> state_;
};

// Connecting on this host either succeeds at once or fails.
Opened<std::unique_ptr<Connection>> connect_unix(SocketPoller& poller, const std::string& path) {
  auto fd = transport::connect_unix(path);
  if (!fd && fd.error() == ENAMETOOLONG) return std::unexpected("the path of the socket is too long");
  if (!fd) return std::unexpected(std::strerror(fd.error()));
  return std::make_unique<SocketConnection>(poller, std::move(*fd), SocketNames{"unix", path, {}, true});
}

class UnixDialling final : public Dialling {
 public:
  UnixDialling(SocketPoller& poller, asio::io_context& io, const std::string& path, Dialled dialled)
      : dialled_(std::make_shared<Dialled>(std::move(dialled))) {
    asio::post(io, [&poller, path, wanted = std::weak_ptr(dialled_)] {
      if (const auto still = wanted.lock()) (*still)(connect_unix(poller, path));
    });
  }

 private:
  std::shared_ptr<Dialled> dialled_;
};

}  // namespace

std::unique_ptr<Dialling> dial_unix(SocketPoller& poller, asio::io_context& io, const std::string& path,
                                    Dialled dialled) {
  return std::make_unique<UnixDialling>(poller, io, path, std::move(dialled));
}

std::unique_ptr<Dialling> dial_tcp(SocketPoller& poller, asio::io_context& io, const std::string& host,
                                   std::uint16_t port, Dialled dialled) {
  const auto finish = [&poller](asio::ip::tcp::socket socket,
                                TcpNames names) -> Opened<std::unique_ptr<Connection>> {
    asio::error_code error;
    OwnedFd fd(socket.release(error));
    if (error) return std::unexpected(error.message());
    SocketNames shown{"tcp", std::move(names.peer), std::move(names.local), names.same_host};
    return std::make_unique<SocketConnection>(poller, std::move(fd), std::move(shown));
  };
  return std::make_unique<TcpDialling>(io, host, port, finish, std::move(dialled));
}

std::unique_ptr<Dialling> dial_tls(asio::io_context& io, std::shared_ptr<TlsSettings> tls,
                                   const std::string& host, std::uint16_t port,
                                   std::function<void()> after_input, Dialled dialled) {
  const auto finish = [tls = std::move(tls), after_input = std::move(after_input)](
                          asio::ip::tcp::socket socket,
                          TcpNames names) -> Opened<std::unique_ptr<Connection>> {
    SocketNames shown{"tls", std::move(names.peer), std::move(names.local), names.same_host};
    return std::make_unique<TlsConnection<asio::ip::tcp::socket>>(std::move(socket), tls, std::move(shown),
                                                                  after_input);
  };
  return std::make_unique<TcpDialling>(io, host, port, finish, std::move(dialled));
}

}  // namespace weir::kv

#include "cli/client/tls_reactor.hpp"

#include <sys/socket.h>

#include <asio/ip/tcp.hpp>

#include "cli/client/socket_dial.hpp"
#include "cli/client/tls_handshake.hpp"

namespace weir::client {
namespace {

class TlsReactor final : public Reactor {
 public:
  Result<std::unique_ptr<Connection>> open(const Endpoint& endpoint, ConnectionEvents& events,
                                           Milliseconds limit) override {
    auto context = contexts_.context_for(endpoint.tls);
    if (!context) return std::unexpected(std::move(context.error()));
    auto fd = dial_tcp(endpoint, limit);
    if (!fd) return std::unexpected(std::move(fd.error()));
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    ::getsockname(fd->get(), reinterpret_cast<sockaddr*>(&address), &length);
    asio::ip::tcp::socket socket(loop_.context());
    socket.assign(address.ss_family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), fd->release());
    return start_tls(loop_, std::move(socket), endpoint, **context, events, limit);
  }

  void turn(std::chrono::nanoseconds limit) override { loop_.turn(limit); }

 private:
  TlsContextSource contexts_;
  AsioLoop loop_;
};

}  // namespace

std::unique_ptr<Reactor> make_tls_reactor() { return std::make_unique<TlsReactor>(); }

}  // namespace weir::client

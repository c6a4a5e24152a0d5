#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include "rdma/acceptor.hpp"
#include "rpc/listener.hpp"
#include "rpc/rdma_transport.hpp"
#include "rpc/tls_transport.hpp"

namespace weir::rpc {

namespace {

// Accepts until it is closed; `take` makes a transport of what came.
template <class Acceptor, class Take>
class RdmaListener final : public Listener {
 public:
  RdmaListener(Acceptor acceptor, Address address, Take take)
      : shared_(std::make_shared<Shared>(Shared{std::move(acceptor), std::move(take)})),
        address_(std::move(address)) {
    address_.port = shared_->acceptor.local_endpoint().port();
    asio::co_spawn(shared_->acceptor.get_executor(), accept(shared_), asio::detached);
  }
  ~RdmaListener() override {
    shared_->closed = true;
    shared_->acceptor.close();
  }
  Address address() const override { return address_; }

 private:
  struct Shared {
    Acceptor acceptor;
    Take take;
    bool closed = false;
  };

  static asio::awaitable<void> accept(std::shared_ptr<Shared> shared) {
    while (!shared->closed) {
      std::error_code error;
      auto connected =
          co_await shared->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error == asio::error::operation_aborted) break;
      if (error) continue;  // that one was not established; the next may be
      shared->take(std::move(connected), [weak = std::weak_ptr(shared)] {
        const auto alive = weak.lock();
        return alive && !alive->closed;
      });
    }
  }

  std::shared_ptr<Shared> shared_;
  Address address_;
};

template <class Acceptor, class Take>
std::unique_ptr<Listener> make_listener(Acceptor acceptor, const Address& address, Take take) {
  return std::make_unique<RdmaListener<Acceptor, Take>>(std::move(acceptor), address, std::move(take));
}

asio::awaitable<void> shake_hands(rdma::Stream stream, TlsPeer tls, std::string peer,
                                  std::function<bool()> listening,
                                  std::function<void(TransportPtr)> accepted) {
  auto made = co_await make_tls_transport(std::move(stream), std::move(tls), std::move(peer));
  if (made && listening()) accepted(std::move(*made));
}

}  // namespace

Result<std::unique_ptr<Listener>> listen_rdma(asio::io_context& io, const Address& address,
                                              const TransportOptions& options, Listener::Accepted accepted) {
  const auto engine = engine_of(io, options);
  if (!engine) return std::unexpected(engine.error());
  const auto at = rdma_endpoint(address);
  if (!at) return std::unexpected(at.error());
  const auto refused = [&](const std::string& why) {
    return fail(Errc::rdma, "cannot listen at " + address.text() + ": " + why);
  };
  if (!address.secure()) {
    auto acceptor = accept_rdma_channels(**engine, *at);
    if (!acceptor) return refused(acceptor.error().what);
    return make_listener(std::move(*acceptor), address,
                         [&io, accepted = std::move(accepted)](rdma::Channel channel, const auto&) {
                           accepted(io, make_rdma_transport(std::move(channel)));
                         });
  }
  auto tls = make_tls_context(options.tls, TlsSide::server);
  if (!tls) return std::unexpected(std::move(tls.error()));
  auto acceptor = rdma::Acceptor::listen(**engine, *at);
  if (!acceptor) return refused(acceptor.error().what);
  return make_listener(
      std::move(*acceptor), address,
      [&io, context = std::move(*tls), accepted = std::move(accepted)](rdma::Stream stream, auto listening) {
        const rdma::Endpoint remote = stream.remote_endpoint();
        std::string peer = "rdma+tls " + remote.address().to_string() + ":" + std::to_string(remote.port());
        TlsPeer peer_tls{TlsSide::server, context, "", std::chrono::seconds(10)};
        const auto executor = stream.get_executor();
        asio::co_spawn(executor,
                       shake_hands(std::move(stream), std::move(peer_tls), std::move(peer), listening,
                                   [&io, accepted](TransportPtr made) { accepted(io, std::move(made)); }),
                       asio::detached);
      });
}

}  // namespace weir::rpc

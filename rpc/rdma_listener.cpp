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

class RdmaListener final : public Listener {
 public:
  struct Shared {
    rdma::Acceptor acceptor;
    std::shared_ptr<asio::ssl::context> tls;
    Accepted accepted;
    bool closed = false;
  };

  RdmaListener(std::shared_ptr<Shared> shared, Address address)
      : shared_(std::move(shared)), address_(std::move(address)) {
    asio::co_spawn(shared_->acceptor.get_executor(), accept(shared_), asio::detached);
  }
  ~RdmaListener() override {
    shared_->closed = true;
    shared_->acceptor.close();
  }
  Address address() const override { return address_; }

 private:
  static asio::awaitable<void> accept(std::shared_ptr<Shared> shared) {
    while (!shared->closed) {
      std::error_code error;
      rdma::Stream stream =
          co_await shared->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error == asio::error::operation_aborted) break;
      if (error) continue;  // that one was not established; the next may be
      if (!shared->tls) {
        shared->accepted(make_rdma_transport(std::move(stream)));
        continue;
      }
      std::string peer = "rdma+tls" + rdma_peer(stream).substr(4);
      TlsPeer tls{TlsSide::server, shared->tls, "", std::chrono::seconds(10)};
      asio::co_spawn(shared->acceptor.get_executor(),
                     make_tls_transport(std::move(stream), std::move(tls), std::move(peer)),
                     [shared](const std::exception_ptr&, Result<TransportPtr> made) {
                       if (made && !shared->closed) shared->accepted(std::move(*made));
                     });
    }
  }

  std::shared_ptr<Shared> shared_;
  const Address address_;
};

}  // namespace

Result<std::unique_ptr<Listener>> listen_rdma(asio::io_context& io, const Address& address,
                                              const TransportOptions& options, Listener::Accepted accepted) {
  const auto engine = engine_of(io, options);
  if (!engine) return std::unexpected(engine.error());
  const auto at = rdma_endpoint(address);
  if (!at) return std::unexpected(at.error());
  std::shared_ptr<asio::ssl::context> tls;
  if (address.secure()) {
    auto made = make_tls_context(options.tls, TlsSide::server);
    if (!made) return std::unexpected(std::move(made.error()));
    tls = std::move(*made);
  }
  auto acceptor = rdma::Acceptor::listen(**engine, *at);
  if (!acceptor) return fail(Errc::rdma, "cannot listen at " + address.text() + ": " + acceptor.error().what);
  Address known = address;
  known.port = acceptor->local_endpoint().port();
  auto shared = std::make_shared<RdmaListener::Shared>(
      RdmaListener::Shared{std::move(*acceptor), std::move(tls), std::move(accepted)});
  return std::make_unique<RdmaListener>(std::move(shared), std::move(known));
}

}  // namespace weir::rpc

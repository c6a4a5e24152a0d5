// The listeners for the connection types "rdma" and "rdma+tls".
#include <asio/ip/address.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "kv/net/rdma.hpp"
#include "kv/net/rdma_connection.hpp"
#include "rdma/acceptor.hpp"
#include "rdma/stream.hpp"

namespace weir::kv {

namespace {

class RdmaListener final : public Listener {
 public:
  RdmaListener(rdma::Acceptor acceptor, std::string_view kind, CurrentTls tls,
               std::shared_ptr<transport::HandshakePlaces> places, Accept accept,
               std::function<void()> after_input, Log log)
      : acceptor_(std::move(acceptor)),
        kind_(kind),
        tls_(std::move(tls)),
        places_(std::move(places)),
        accept_(std::move(accept)),
        after_input_(std::move(after_input)),
        log_(std::move(log)),
        retry_(acceptor_.get_executor()) {
    take_next();
  }
  ~RdmaListener() override {
    *alive_ = false;
    acceptor_.close();
  }

  std::string where() const override {
    return std::string(kind_) + ' ' + address_text(acceptor_.local_endpoint());
  }
  std::uint16_t port() const override { return acceptor_.local_endpoint().port(); }

 private:
  void take_next() {
    if (tls_ && !places_->has_room()) return pause(transport::HandshakePlaces::look_again);
    acceptor_.async_accept([this, alive = alive_](const std::error_code& error, rdma::Stream stream) {
      if (!*alive) return;
      if (error) return could_not_accept(error);
      failing_ = false;
      take(std::move(stream));
      take_next();
      after_input_();
    });
  }

  void take(rdma::Stream stream) {
    auto tls = tls_ ? tls_() : nullptr;
    if (tls_ && tls == nullptr) return;  // never plain where TLS is required
    auto place = tls_ ? places_->take() : transport::HandshakePlaces::Place();
    accept_(over_rdma(std::move(stream), std::move(tls), after_input_, std::move(place)));
  }

  void could_not_accept(const std::error_code& error) {
    if (!std::exchange(failing_, true)) {
      log_(where() + ": cannot accept clients: " + error.message() + "; trying again every 100 ms");
    }
    pause(std::chrono::milliseconds(100));
  }

  void pause(std::chrono::milliseconds time) {
    retry_.expires_after(time);
    retry_.async_wait([this, alive = alive_](const std::error_code& cancelled) {
      if (!*alive || cancelled) return;
      take_next();
      after_input_();  // a handshake may have left
    });
  }

  rdma::Acceptor acceptor_;
  std::string_view kind_;
  CurrentTls tls_;  // empty: plain RDMA
  std::shared_ptr<transport::HandshakePlaces> places_;
  Accept accept_;
  std::function<void()> after_input_;
  Log log_;
  asio::steady_timer retry_;
  bool failing_ = false;
  // Completions may run after the listener has been destroyed.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

OpenedListener listen_rdma(rdma::Engine& engine, const std::string& address, std::uint16_t port,
                           const RdmaListenOptions& options, CurrentTls tls,
                           std::shared_ptr<transport::HandshakePlaces> places, Accept accept,
                           std::function<void()> after_input, Log log) {
  const std::string numeric = address == "*" ? "0.0.0.0" : address == "::*" ? "::" : address;
  const std::string failed = "Could not listen for RDMA on " + numeric + ':' + std::to_string(port) + ": ";
  asio::error_code error;
  const asio::ip::address parsed =
      asio::ip::make_address(numeric == "localhost" ? "127.0.0.1" : numeric, error);
  if (error) return std::unexpected(failed + "not a numeric address. Check --rdma-bind.");
  rdma::AcceptorSettings settings;
  settings.stream = options.stream;
  settings.backlog = options.backlog;
  auto acceptor = rdma::Acceptor::listen(engine, rdma::Endpoint(parsed, port), settings);
  if (!acceptor) return std::unexpected(failed + acceptor.error().what);
  const std::string_view kind = !tls ? "rdma" : "rdma+tls";
  return std::make_unique<RdmaListener>(std::move(*acceptor), kind, std::move(tls), std::move(places),
                                        std::move(accept), std::move(after_input), std::move(log));
}

}  // namespace weir::kv

// Connections that this server makes over RDMA. A name may have several addresses:
// they are tried in turn.
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <utility>

#include "kv/net/rdma.hpp"
#include "kv/net/rdma_connection.hpp"
#include "rdma/stream.hpp"
#include "transport/dial.hpp"

namespace weir::kv {

namespace {

class RdmaDialling final : public Dialling {
 public:
  RdmaDialling(rdma::Engine& engine, const std::string& host, std::uint16_t port, RdmaDial how,
               Dialled dialled)
      : state_(std::make_shared<State>(engine, std::move(how), std::move(dialled))) {
    asio::co_spawn(engine.io(), attempt(state_, host, port), asio::detached);
  }
  ~RdmaDialling() override {
    state_->dialled = nullptr;
    state_->resolver.cancel();
    state_->stream.close();
  }

 private:
  // Outlives the attempt while part of it is still in progress.
  struct State {
    State(rdma::Engine& e, RdmaDial h, Dialled d)
        : engine(e), how(std::move(h)), resolver(e.io()), stream(e), dialled(std::move(d)) {}

    rdma::Engine& engine;
    RdmaDial how;
    asio::ip::tcp::resolver resolver;
    rdma::Stream stream;
    Dialled dialled;  // empty: given up, or already called
  };
  using Outcome = Opened<std::unique_ptr<Connection>>;

  static asio::awaitable<void> attempt(std::shared_ptr<State> state, std::string host, std::uint16_t port) {
    Outcome outcome = co_await connect(*state, std::move(host), port);
    if (const Dialled dialled = std::exchange(state->dialled, nullptr)) dialled(std::move(outcome));
  }

  static asio::awaitable<Outcome> connect(State& state, std::string host, std::uint16_t port) {
    std::error_code error;
    const auto found = co_await transport::find_host(state.resolver, std::move(host), port, error);
    if (error) co_return std::unexpected(error.message());
    std::string why = "the name has no address";
    for (const auto& entry : found) {
      if (!state.dialled) break;
      state.stream = rdma::Stream(state.engine);
      const rdma::Endpoint peer = entry.endpoint();
      co_await rdma::async_connect(state.stream, peer, state.how.stream,
                                   asio::redirect_error(asio::use_awaitable, error));
      if (!state.dialled) break;
      if (!error) co_return over_rdma(std::move(state.stream), state.how.tls, state.how.after_input);
      why = state.stream.error().what.empty() ? error.message() : state.stream.error().what;
    }
    co_return std::unexpected(why);
  }

  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<Dialling> dial_rdma(rdma::Engine& engine, const std::string& host, std::uint16_t port,
                                    RdmaDial how, Dialled dialled) {
  return std::make_unique<RdmaDialling>(engine, host, port, std::move(how), std::move(dialled));
}

}  // namespace weir::kv

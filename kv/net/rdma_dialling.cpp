// Connections that this server makes over RDMA. A name may stand for several addresses: they are tried in
// turn.
#include <asio/error.hpp>
#include <asio/ip/tcp.hpp>
#include <utility>

#include "kv/net/rdma.hpp"
#include "kv/net/rdma_connection.hpp"
#include "rdma/stream.hpp"

namespace weir::kv {

namespace {

using Found = asio::ip::tcp::resolver::results_type;

class RdmaDialling final : public Dialling {
 public:
  RdmaDialling(rdma::Engine& engine, RdmaDial how, Dialled dialled)
      : state_(std::make_shared<State>(engine, std::move(how), std::move(dialled))) {}
  ~RdmaDialling() override {
    state_->dialled = nullptr;
    state_->resolver.cancel();
    state_->stream.close();
  }

  void begin(const std::string& host, std::uint16_t port) {
    state_->resolver.async_resolve(host, std::to_string(port),
                                   [state = state_](const std::error_code& error, const Found& found) {
                                     if (!state->dialled) return;
                                     if (error) return tell(*state, std::unexpected(error.message()));
                                     state->next = found.begin();
                                     connect(state);
                                   });
  }

 private:
  // Outlives the attempt while something of it is under way.
  struct State {
    State(rdma::Engine& e, RdmaDial h, Dialled d)
        : engine(e), how(std::move(h)), resolver(e.io()), stream(e), dialled(std::move(d)) {}

    rdma::Engine& engine;
    RdmaDial how;
    asio::ip::tcp::resolver resolver;
    Found::iterator next;
    rdma::Stream stream;
    Dialled dialled;  // empty: given up, or told
  };

  // To state->next, which is an address.
  static void connect(const std::shared_ptr<State>& state) {
    state->stream = rdma::Stream(state->engine);
    const rdma::Endpoint peer = state->next->endpoint();
    ++state->next;
    rdma::async_connect(state->stream, peer, state->how.stream, [state](const std::error_code& error) {
      if (!state->dialled) return;
      if (!error)
        return tell(*state, over_rdma(std::move(state->stream), state->how.tls, state->how.after_input));
      if (state->next != Found::iterator()) return connect(state);
      const std::string why = state->stream.error().what;
      tell(*state, std::unexpected(why.empty() ? error.message() : why));
    });
  }

  static void tell(State& state, Opened<std::unique_ptr<Connection>> outcome) {
    const Dialled dialled = std::exchange(state.dialled, nullptr);
    dialled(std::move(outcome));
  }

  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<Dialling> dial_rdma(rdma::Engine& engine, const std::string& host, std::uint16_t port,
                                    RdmaDial how, Dialled dialled) {
  auto attempt = std::make_unique<RdmaDialling>(engine, std::move(how), std::move(dialled));
  attempt->begin(host, port);
  return attempt;
}

}  // namespace weir::kv

#include "cli/client/rdma_reactor.hpp"

#include <asio/ip/tcp.hpp>
#include <mutex>
#include <optional>

#include "cli/client/asio_loop.hpp"
#include "cli/client/tls_handshake.hpp"
#include "rdma/engine.hpp"
#include "rdma/provider.hpp"
#include "rdma/stream.hpp"

namespace weir::client {
namespace {

// load_provider must not run in two threads at once, and each thread of a load makes a reactor.
Result<rdma::Provider> provider_for(const RdmaSettings& settings) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const auto choice = rdma::parse_provider_choice(settings.provider);
  if (!choice) return fail(ErrorKind::usage, choice.error().what);
  rdma::ProviderOptions options;
  options.choice = *choice;
  options.library_path = settings.library_path;
  auto provider = rdma::load_provider(options);
  if (!provider) return fail(ErrorKind::unsupported, "RDMA cannot be used: " + provider.error().what);
  return std::move(*provider);
}

Result<asio::ip::tcp::endpoint> resolve(asio::io_context& context, const Endpoint& endpoint) {
  std::error_code error;
  asio::ip::tcp::resolver resolver(context);
  const auto found = resolver.resolve(endpoint.host, std::to_string(endpoint.port), error);
  if (error || found.empty())
    return fail(ErrorKind::unreachable,
                "Could not connect to " + address_of(endpoint) + ": " + error.message());
  return found.begin()->endpoint();
}

// The fast path of a stream: bytes are parsed in place, and sent before write() returns.
class RdmaConnection final : public Connection {
 public:
  RdmaConnection(rdma::Stream stream, ConnectionEvents& events)
      : stream_(std::move(stream)), events_(events) {
    stream_.on_readable([this] { take_received(); });
    stream_.on_writable([this] { events_.writable(); });
  }

  std::size_t write(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) override {
    return stream_.try_write(asio::const_buffer(bytes.data(), bytes.size()), owner);
  }

 private:
  void take_received() {
    for (auto bytes = stream_.readable(); !bytes.empty(); bytes = stream_.readable()) {
      events_.received(bytes);
      stream_.consume(bytes.size());
    }
    if (const auto end = stream_.end(); end && !over_) {
      over_ = true;
      events_.ended(Error{ErrorKind::closed, end == asio::error::eof ? "Server closed the connection"
                                                                     : "Error: " + stream_.error().what});
    }
  }

  rdma::Stream stream_;
  ConnectionEvents& events_;
  bool over_ = false;
};

class RdmaReactor final : public Reactor {
 public:
  Result<std::unique_ptr<Connection>> open(const Endpoint& endpoint, ConnectionEvents& events,
                                           Milliseconds limit) override {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    auto stream = connect(endpoint, limit);
    if (!stream) return std::unexpected(std::move(stream.error()));
    if (!is_tls(endpoint.transport)) return std::make_unique<RdmaConnection>(std::move(*stream), events);
    auto context = contexts_.context_for(endpoint.tls);
    if (!context) return std::unexpected(std::move(context.error()));
    const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
    return start_tls(loop_, std::move(*stream), endpoint, **context, events, left);
  }

  void turn(std::chrono::nanoseconds limit) override { loop_.turn(limit); }

 private:
  Result<rdma::Engine*> engine_for(const RdmaSettings& settings) {
    if (engine_) return engine_;
    auto provider = provider_for(settings);
    if (!provider) return std::unexpected(std::move(provider.error()));
    auto engine = rdma::Engine::open(loop_.context(), *provider);
    if (!engine) return fail(ErrorKind::unsupported, "RDMA cannot be used: " + engine.error().what);
    engine_ = *engine;
    return engine_;
  }

  Result<rdma::Stream> connect(const Endpoint& endpoint, Milliseconds limit) {
    auto engine = engine_for(endpoint.rdma);
    if (!engine) return std::unexpected(std::move(engine.error()));
    auto address = resolve(loop_.context(), endpoint);
    if (!address) return std::unexpected(std::move(address.error()));
    rdma::Stream stream(**engine);
    const auto outcome = std::make_shared<std::optional<std::error_code>>();
    rdma::StreamSettings settings;
    settings.receive_buffer_bytes = endpoint.rdma.rx_bytes;
    rdma::async_connect(stream, *address, settings, [outcome](std::error_code error) { *outcome = error; });
    const bool known = loop_.turn_until([&] { return outcome->has_value(); }, limit);
    if (known && !outcome->value()) return stream;
    const auto why = known ? stream.error().what : std::string("no answer in time");
    return fail(ErrorKind::unreachable, "Could not connect to " + address_of(endpoint) + " over RDMA: " +
                                            (why.empty() ? outcome->value().message() : why));
  }

  TlsContextSource contexts_;
  AsioLoop loop_;
  rdma::Engine* engine_ = nullptr;  // owned by the loop
};

}  // namespace

Result<std::unique_ptr<Reactor>> make_rdma_reactor() { return std::make_unique<RdmaReactor>(); }

Result<std::string> describe_rdma(const RdmaSettings& settings) {
  auto provider = provider_for(settings);
  if (!provider) return std::unexpected(std::move(provider.error()));
  return provider->describe();
}

}  // namespace weir::client

#include "rpc/rdma_transport.hpp"

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <cstring>

#include "rdma/provider.hpp"

namespace weir::rpc {

namespace {

// What the peer can still write to is copied before it is looked at.
class RdmaTransport final : public Transport, public std::enable_shared_from_this<RdmaTransport> {
 public:
  explicit RdmaTransport(rdma::Stream stream) : stream_(std::move(stream)), peer_(rdma_peer(stream_)) {}

  void start(TransportUser& user) override {
    user_ = &user;
    stream_.on_readable([this] { read(); });
    stream_.on_writable([this] { run(&TransportUser::writable); });
  }

  std::size_t write(std::span<const asio::const_buffer> pieces) override { return stream_.try_write(pieces); }

  void read_on(bool on) override {
    if (std::exchange(reading_, on) || !on || user_ == nullptr) return;
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->read(); });
  }

  void close() override {
    user_ = nullptr;
    stream_.close();
  }

  std::string peer() const override { return peer_; }

 private:
  void run(void (TransportUser::*what)()) {
    const auto self = shared_from_this();
    if (user_ != nullptr) (user_->*what)();
  }

  void read() {
    const auto self = shared_from_this();
    std::array<std::byte, 16 << 10> copy;
    while (user_ != nullptr && reading_) {
      const std::span<const std::byte> there = stream_.readable();
      if (there.empty()) break;
      const std::span<std::byte> wanted = user_->wanted();
      const std::span<std::byte> place = wanted.empty() ? std::span<std::byte>(copy) : wanted;
      const std::size_t bytes = std::min(there.size(), place.size());
      std::memcpy(place.data(), there.data(), bytes);
      stream_.consume(bytes);
      wanted.empty() ? user_->received(place.first(bytes)) : user_->filled(bytes);
    }
    if (user_ != nullptr) user_->round_ended();
    if (user_ == nullptr || !stream_.end() || !stream_.readable().empty()) return;
    TransportUser* user = user_;
    const std::string why =
        peer_ + ": " + (stream_.error().what.empty() ? stream_.end().message() : stream_.error().what);
    close();
    user->ended({Errc::connection_lost, why});
  }

  rdma::Stream stream_;
  const std::string peer_;
  TransportUser* user_ = nullptr;
  bool reading_ = true;
};

// Remembers the engine of an io_context.
struct EngineOf final : asio::execution_context::service {
  using key_type = EngineOf;
  static asio::execution_context::id id;
  explicit EngineOf(asio::io_context& io) : asio::execution_context::service(io) {}
  void shutdown() override {}
  rdma::Engine* engine = nullptr;
};
asio::execution_context::id EngineOf::id;

}  // namespace

Result<rdma::Engine*> engine_of(asio::io_context& io, const TransportOptions& options) {
  auto& known = asio::use_service<EngineOf>(io);
  if (options.engine != nullptr) known.engine = options.engine;
  if (known.engine != nullptr) return known.engine;
  const auto provider = rdma::load_provider({});
  if (!provider) return fail(Errc::rdma, provider.error().what);
  const auto engine = rdma::Engine::open(io, *provider);
  if (!engine) return fail(Errc::rdma, engine.error().what);
  return known.engine = *engine;
}

TransportPtr make_rdma_transport(rdma::Stream stream) {
  return std::make_shared<RdmaTransport>(std::move(stream));
}

Result<rdma::Endpoint> rdma_endpoint(const Address& address) {
  std::error_code bad;
  const auto host = asio::ip::make_address(address.host, bad);
  if (bad)
    return fail(Errc::bad_address,
                "'" + address.host + "': RDMA addresses are numbers: name the peer by its IP address");
  return rdma::Endpoint{host, address.port};
}

std::string rdma_peer(const rdma::Stream& stream) {
  const auto remote = stream.remote_endpoint();
  return "rdma " + remote.address().to_string() + ":" + std::to_string(remote.port());
}

}  // namespace weir::rpc

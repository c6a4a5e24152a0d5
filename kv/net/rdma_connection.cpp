#include "kv/net/rdma_connection.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "kv/net/tls_connection.hpp"
#include "transport/host_port.hpp"
#include "waiting/turn.hpp"

namespace weir::kv {

namespace {

SocketNames names_of(const rdma::Stream& stream, std::string_view kind) {
  const rdma::Endpoint peer = stream.remote_endpoint();
  const rdma::Endpoint local = stream.local_endpoint();
  return {kind, address_text(peer), address_text(local),
          peer.address().is_loopback() || peer.address() == local.address()};
}

class RdmaConnection final : public Connection {
 public:
  RdmaConnection(rdma::Stream stream, SocketNames names, std::function<void()> after_input)
      : stream_(std::move(stream)), names_(std::move(names)), after_input_(std::move(after_input)) {}

  void start(Session& session) override {
    session_ = &session;
    stream_.on_writable([this] {
      flush();
      end_round();
    });
    stream_.on_readable([this] { receive(); });
  }

  void flush() override {
    if (session_ == nullptr) return;
    ReplyQueue& queue = session_->outgoing();
    if (session_ == nullptr) return;
    constexpr std::size_t most_pieces = 16;
    std::array<iovec, most_pieces> pieces;
    std::array<asio::const_buffer, most_pieces> buffers;
    while (!queue.empty()) {
      std::size_t count = queue.gather(pieces.data(), most_pieces);
      // A large value goes alone: the device reads it in place.
      const auto large = std::find_if(pieces.begin(), pieces.begin() + count,
                                      [](const iovec& piece) { return piece.iov_len >= large_value; });
      count = std::max<std::size_t>(static_cast<std::size_t>(large - pieces.begin()), 1);
      std::size_t offered = 0;
      for (std::size_t i = 0; i < count; ++i) {
        buffers[i] = {pieces[i].iov_base, pieces[i].iov_len};
        offered += pieces[i].iov_len;
      }
      const std::size_t taken =
          large == pieces.begin()
              ? stream_.try_write(buffers[0], std::make_shared<BlobRef>(queue.share_first()))
              : stream_.try_write(std::span(buffers.data(), count));
      queue.consume(taken);
      if (taken < offered) return;  // on_writable continues
    }
    session_->drained();
    if (session_ != nullptr && held_back_ && session_->appetite() > 0) {
      held_back_ = false;
      stream_.on_readable([this] { receive(); });  // soon, for bytes already there
    }
  }

  void close() override {
    session_ = nullptr;
    stream_.close();
  }
  // The peer's buffer must be announced first: without it no reply could be sent.
  bool established() const override { return stream_.peer_announced(); }
  bool finished() const override { return true; }

  std::string_view kind() const override { return names_.kind; }
  std::string peer_address() const override { return names_.peer; }
  std::string local_address() const override { return names_.local; }
  bool local() const override { return names_.same_host; }

 private:
  static constexpr std::size_t large_value = std::size_t{32} << 10;
  static_assert(large_value > BlockPool::block_size, "a block of the pool is used again while it is read");

  // Bytes are copied here before they are parsed; one buffer for all connections of the thread.
  static std::span<char> scratch() {
    static thread_local std::array<char, 64 * 1024> bytes;
    return bytes;
  }

  void receive() {
    const waiting::Turn turn;
    while (session_ != nullptr) {
      const std::span<const std::byte> arrived = stream_.readable();
      if (arrived.empty()) break;
      if (turn.over()) {
        stream_.on_readable([this] { receive(); });  // soon, for bytes already there
        return end_round();
      }
      const std::size_t most = session_->appetite();
      if (held_back_ = most == 0; held_back_) break;
      const std::span<char> wanted = session_->wanted();
      const std::span<char> place = wanted.empty() ? scratch() : wanted;
      const std::size_t n = std::min({arrived.size(), place.size(), most});
      std::memcpy(place.data(), arrived.data(), n);
      stream_.consume(n);
      wanted.empty() ? session_->received(place.first(n)) : session_->filled(n);
    }
    if (session_ != nullptr && stream_.end()) {
      flush();
      Session* session = session_;
      const std::string why = stream_.error().what;
      close();
      if (session != nullptr) session->lost(why);
    }
    end_round();
  }

  // May free this object, so call a copy of the function.
  void end_round() const {
    const auto after_input = after_input_;
    after_input();
  }

  rdma::Stream stream_;
  SocketNames names_;
  std::function<void()> after_input_;
  Session* session_ = nullptr;
  bool held_back_ = false;  // received bytes wait, because the session had no appetite
};

}  // namespace

std::string address_text(const rdma::Endpoint& endpoint) {
  return transport::host_port_text(endpoint.address().to_string(), endpoint.port());
}

std::unique_ptr<Connection> over_rdma(rdma::Stream stream, std::shared_ptr<TlsSettings> tls,
                                      std::function<void()> after_input,
                                      transport::HandshakePlaces::Place place) {
  SocketNames names = names_of(stream, tls == nullptr ? "rdma" : "rdma+tls");
  if (tls == nullptr)
    return std::make_unique<RdmaConnection>(std::move(stream), std::move(names), std::move(after_input));
  return std::make_unique<TlsConnection<rdma::Stream>>(std::move(stream), std::move(tls), std::move(names),
                                                       std::move(after_input), std::move(place));
}

}  // namespace weir::kv

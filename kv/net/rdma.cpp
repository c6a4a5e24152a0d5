// The connection types "rdma" and "rdma+tls".
//
// Plain RDMA costs one copy out of the receive buffer (the peer can rewrite that memory at any time, so
// nothing is parsed in place) and one write to the device for all replies of a batch; a large value is read
// by the device where it lies, if it can. Input is taken while replies wait for the peer's buffer, as long as
// the session has an appetite: a peer may have to finish writing before it reads. What it does not take stays
// in the receive buffers, so the peer is given no more room.
#include "kv/net/rdma.hpp"

#include <algorithm>
#include <array>
#include <asio/ip/address.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstring>

#include "kv/net/tls_connection.hpp"
#include "rdma/acceptor.hpp"
#include "rdma/stream.hpp"
#include "rdma/turn.hpp"

namespace weir::kv {

namespace {

std::string text(const rdma::Endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? '[' + address + "]:" + port : address + ':' + port;
}

SocketNames names_of(const rdma::Stream& stream, std::string_view kind) {
  const rdma::Endpoint peer = stream.remote_endpoint();
  const rdma::Endpoint local = stream.local_endpoint();
  return {kind, text(peer), text(local), peer.address().is_loopback() || peer.address() == local.address()};
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
      // A large value goes alone: the device reads it where it lies.
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
      if (taken < offered) return;  // on_writable goes on
    }
    session_->drained();
    if (session_ != nullptr && held_back_ && session_->appetite() > 0) {
      held_back_ = false;
      stream_.on_readable([this] { receive(); });  // soon, for what is there already
    }
  }

  void close() override {
    session_ = nullptr;
    stream_.close();
  }
  // The protocol's greeting: without it no reply could be sent.
  bool established() const override { return stream_.peer_announced(); }
  bool finished() const override { return true; }

  std::string_view kind() const override { return names_.kind; }
  std::string peer_address() const override { return names_.peer; }
  std::string local_address() const override { return names_.local; }
  bool local() const override { return names_.same_host; }

 private:
  static constexpr std::size_t large_value = std::size_t{32} << 10;
  static_assert(large_value > BlockPool::block_size, "a block of the pool is used again while it is read");

  // The buffer bytes are copied to before they are looked at; one for all connections of the thread.
  static std::span<char> scratch() {
    static thread_local std::array<char, 64 * 1024> bytes;
    return bytes;
  }

  void receive() {
    const rdma::Turn turn;
    while (session_ != nullptr) {
      const std::span<const std::byte> arrived = stream_.readable();
      if (arrived.empty()) break;
      if (turn.over()) {
        stream_.on_readable([this] { receive(); });  // soon, for what is there already
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

  // May free this object, so the function is run from a copy.
  void end_round() const {
    const auto after_input = after_input_;
    after_input();
  }

  rdma::Stream stream_;
  SocketNames names_;
  std::function<void()> after_input_;
  Session* session_ = nullptr;
  bool held_back_ = false;  // bytes are there that the session had no appetite for
};

class RdmaListener final : public Listener {
 public:
  RdmaListener(rdma::Acceptor acceptor, std::string_view kind, CurrentTls tls,
               std::shared_ptr<rdma::HandshakePlaces> places, Accept accept,
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

  std::string where() const override { return std::string(kind_) + ' ' + text(acceptor_.local_endpoint()); }
  std::uint16_t port() const override { return acceptor_.local_endpoint().port(); }

 private:
  void take_next() {
    if (tls_ && places_->full()) return pause(rdma::HandshakePlaces::look_again);
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
    SocketNames names = names_of(stream, kind_);
    if (!tls_) {
      accept_(std::make_unique<RdmaConnection>(std::move(stream), std::move(names), after_input_));
    } else {
      accept_(std::make_unique<TlsConnection<rdma::Stream>>(std::move(stream), tls_(), std::move(names),
                                                            after_input_, places_->take()));
    }
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
      if (*alive && !cancelled) take_next();
    });
  }

  rdma::Acceptor acceptor_;
  std::string_view kind_;
  CurrentTls tls_;  // empty: plain RDMA
  std::shared_ptr<rdma::HandshakePlaces> places_;
  Accept accept_;
  std::function<void()> after_input_;
  Log log_;
  asio::steady_timer retry_;
  bool failing_ = false;
  // Completions may run after the listener is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

OpenedListener listen_rdma(rdma::Engine& engine, const std::string& address, std::uint16_t port,
                           const RdmaListenOptions& options, CurrentTls tls,
                           std::shared_ptr<rdma::HandshakePlaces> places, Accept accept,
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

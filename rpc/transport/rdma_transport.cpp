#include "rpc/transport/rdma_transport.hpp"

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "rdma/provider.hpp"

namespace weir::rpc {

namespace {

// Fits into one frame of the channel, so it is copied once and not reassembled at the other end.
constexpr std::size_t small_message_bytes = (16 << 10) - 64;
// The maximum; the channel copies one part of it while the peer fetches the previous one.
constexpr std::size_t longest_message_bytes = 64 << 20;

Result<rdma::ChannelSettings> channel_settings(const TransportOptions& options) {
  rdma::ChannelSettings settings = options.rdma_channel;
  settings.rendezvous_bytes = large_piece_bytes;
  settings.max_message_bytes = longest_message_bytes;
  // With fewer blocks to send from, more of them ask when they are free again.
  settings.signal_interval =
      std::min<std::uint16_t>(settings.signal_interval, std::max(1, settings.send_blocks / 2));
  if (const auto sound = rdma::check(settings); !sound)
    return fail(Errc::bad_setting, "TransportOptions::rdma_channel: " + sound.error().what);
  return settings;
}

class RdmaTransport;

// Registered memory that a Buffer holds: a received message, or a block to be sent. The transport finds it by
// the address of its first byte.
struct Kept {
  rdma::Message message;
  rdma::Buffer block;
  const std::byte* begin = nullptr;
  std::weak_ptr<RdmaTransport> from;
  ~Kept();
};

// A Buffer may be released in any thread at any time. A message may be released only in the thread of its
// engine, or when no engine is left.
class Releases {
 public:
  explicit Releases(asio::io_context& io) : executor_(io.get_executor()) {}

  static void release(const std::shared_ptr<Releases>& self, std::unique_ptr<Kept> kept) {
    const std::lock_guard lock(self->mutex_);
    if (self->closed_ || self->executor_.running_in_this_thread()) return kept.reset();
    self->waiting_.push_back(std::move(kept));
    if (self->waiting_.size() == 1) asio::post(self->executor_, [self] { self->run(); });
  }
  // The io_context is going; the holders of messages are the last users of their memory.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waiting_.clear();
  }

 private:
  void run() {
    std::vector<std::unique_ptr<Kept>> gone;
    const std::lock_guard lock(mutex_);
    gone.swap(waiting_);
  }

  std::mutex mutex_;
  bool closed_ = false;
  std::vector<std::unique_ptr<Kept>> waiting_;
  const asio::io_context::executor_type executor_;
};

// Remembers the engine of an io_context.
struct EngineOf final : asio::execution_context::service {
  using key_type = EngineOf;
  static asio::execution_context::id id;
  explicit EngineOf(asio::io_context& io)
      : asio::execution_context::service(io), releases(std::make_shared<Releases>(io)) {}
  void shutdown() override { releases->close(); }
  std::mutex mutex;  // guards `engine`: a server sets it for its threads, whose functions may be reading it
  rdma::Engine* engine = nullptr;
  const std::shared_ptr<Releases> releases;
};
asio::execution_context::id EngineOf::id;

std::string text_of(const rdma::Endpoint& peer) {
  return std::string("rdma ")
      .append(peer.address().to_string())
      .append(":")
      .append(std::to_string(peer.port()));
}

// The stream of frames, cut into messages wherever that is cheap. Small pieces travel together, and each
// large piece travels alone, so that a large frame or attachment arrives as one message and is used in place.
// A large frame is encoded into registered memory and sent from there. An attachment that arrived in one
// message stays in place; if it is sent back, it is sent from there.
class RdmaTransport final : public Transport, public std::enable_shared_from_this<RdmaTransport> {
 public:
  explicit RdmaTransport(rdma::Channel channel)
      : channel_(std::move(channel)),
        peer_(text_of(channel_.remote_endpoint())),
        releases_(asio::use_service<EngineOf>(channel_.get_executor().context()).releases) {}

  void start(TransportUser& user) override {
    user_ = &user;
    channel_.on_readable([this] { read(); });
    channel_.on_writable([this] {
      const auto self = shared_from_this();
      if (user_ != nullptr) user_->writable();
    });
  }

  std::size_t write(std::span<const asio::const_buffer> pieces) override {
    std::size_t taken = 0;
    std::array<asio::const_buffer, 64> together;
    std::size_t count = 0, bytes = 0;
    const auto send_together = [&] {
      if (count > 0 && !channel_.try_send(std::span(together).first(count))) return false;
      taken += bytes;
      count = bytes = 0;
      return true;
    };
    for (asio::const_buffer piece : pieces) {
      while (piece.size() > 0) {
        if (piece.size() >= large_piece_bytes || message_left_ > 0) {
          if (!send_together()) return taken;
          const std::size_t sent = send_large(piece);
          if (sent == 0) return taken;
          taken += sent;
          piece += sent;
          continue;
        }
        const std::size_t part = std::min(piece.size(), small_message_bytes - bytes);
        together[count++] = {piece.data(), part};
        bytes += part;
        piece += part;
        if ((bytes == small_message_bytes || count == together.size()) && !send_together()) return taken;
      }
    }
    send_together();
    return taken;
  }

  Buffer block(std::size_t bytes) override {
    rdma::Buffer block = channel_.allocate_spare(bytes);
    if (!block) return {};
    const std::span<std::byte> memory = block.bytes();
    return as_buffer(
        memory, std::make_unique<Kept>(rdma::Message(), std::move(block), memory.data(), weak_from_this()));
  }

  bool sends_in_place(std::span<const std::byte> bytes) const override {
    return kept_.contains(bytes.data());
  }

  void read_on(bool on) override {
    if (std::exchange(reading_, on) || !on || user_ == nullptr) return;
    asio::post(channel_.get_executor(), [self = shared_from_this()] { self->read(); });
  }

  // A closed channel still sends what it has taken, and its end overtakes nothing.
  bool end_output() override { return true; }

  void close() override {
    user_ = nullptr;
    channel_.close();
  }

  std::string peer() const override { return peer_; }

 private:
  friend struct Kept;
  struct Owner {
    std::shared_ptr<Releases> releases;
    std::unique_ptr<Kept> kept;
    static void release(void* owner, std::byte*, std::size_t) {
      const std::unique_ptr<Owner> self(static_cast<Owner*>(owner));
      Releases::release(self->releases, std::move(self->kept));
    }
  };

  // The piece as registered memory that can be sent in place; otherwise empty. It is shared: the holder of
  // the Buffer may keep it, and the memory is not reused before it is released.
  rdma::Buffer registered(asio::const_buffer piece) {
    const auto found = kept_.find(static_cast<const std::byte*>(piece.data()));
    if (message_left_ > 0 || found == kept_.end()) return {};
    Kept& kept = *found->second;
    if (kept.message)
      return kept.message.size() == piece.size() ? channel_.share(kept.message) : rdma::Buffer();
    return channel_.share(kept.block, piece.size());
  }

  // Returns how many bytes were taken.
  std::size_t send_large(asio::const_buffer piece) {
    if (rdma::Buffer as_it_is = registered(piece)) {
      return channel_.try_send(as_it_is) ? piece.size() : 0;
    }
    const std::size_t message =
        message_left_ > 0 ? message_left_ : std::min(piece.size(), longest_message_bytes);
    const std::size_t sent = channel_.try_send_some({piece.data(), message});
    message_left_ = sent > 0 ? message - sent : message_left_;
    return sent;
  }

  void read() {
    const auto self = shared_from_this();
    while (user_ != nullptr && reading_) {
      std::optional<rdma::Message> message = channel_.try_receive();
      if (!message) break;
      deliver(std::move(*message));
    }
    if (user_ != nullptr) user_->round_ended();
    // Also if nothing is read because replies do not leave: a peer that is gone will never take them.
    if (user_ == nullptr || !channel_.end()) return;
    TransportUser* user = user_;
    const std::string why =
        peer_ + ": " + (channel_.error().what.empty() ? channel_.end().message() : channel_.error().what);
    close();
    user->ended({Errc::connection_lost, why});
  }

  void deliver(rdma::Message message) {
    const std::span<const std::byte> bytes = message.bytes();
    if (bytes.size() < large_piece_bytes || !message.keep()) return user_->received(bytes);
    auto* const data = const_cast<std::byte*>(bytes.data());  // nobody else writes to it
    Buffer buffer = as_buffer({data, bytes.size()}, std::make_unique<Kept>(std::move(message), rdma::Buffer(),
                                                                           data, weak_from_this()));
    if (!user_->keep(buffer)) user_->received(bytes);
  }

  Buffer as_buffer(std::span<std::byte> memory, std::unique_ptr<Kept> kept) {
    kept_.emplace(kept->begin, kept.get());
    auto owner = std::make_unique<Owner>(releases_, std::move(kept));
    return {memory, &Owner::release, owner.release()};
  }

  rdma::Channel channel_;
  std::string peer_;
  TransportUser* user_ = nullptr;
  bool reading_ = true;
  std::size_t message_left_ = 0;  // of a large message that is partly sent
  std::unordered_map<const std::byte*, Kept*> kept_;
  const std::shared_ptr<Releases> releases_;
};

Kept::~Kept() {
  if (const auto transport = from.lock()) transport->kept_.erase(begin);
}

}  // namespace

Result<rdma::Engine*> engine_of(asio::io_context& io, const TransportOptions& options) {
  auto& known = asio::use_service<EngineOf>(io);
  const std::lock_guard lock(known.mutex);
  if (options.engine != nullptr && &options.engine->io() == &io) known.engine = options.engine;
  if (known.engine != nullptr) return known.engine;
  const auto provider = rdma::load_provider({});
  if (!provider) return fail(Errc::rdma, provider.error().what);
  const auto engine = rdma::Engine::open(io, *provider);
  if (!engine) return fail(Errc::rdma, engine.error().what);
  return known.engine = *engine;
}

Result<rdma::Engine*> engine_beside(const rdma::Engine& like, asio::io_context& io) {
  auto& known = asio::use_service<EngineOf>(io);
  const std::lock_guard lock(known.mutex);
  if (known.engine != nullptr) return known.engine;
  const auto engine = rdma::Engine::open_beside(like, io);
  if (!engine) return fail(Errc::rdma, engine.error().what);
  return known.engine = *engine;
}

Result<rdma::ChannelAcceptorSettings> rdma_acceptor_settings(const TransportOptions& options) {
  const auto channel = channel_settings(options);
  if (!channel) return std::unexpected(channel.error());
  rdma::ChannelAcceptorSettings settings;
  settings.channel = *channel;
  return settings;
}

asio::awaitable<Result<TransportPtr>> connect_rdma_channel(rdma::Engine& engine, rdma::Endpoint at,
                                                           std::chrono::milliseconds timeout,
                                                           TransportOptions options) {
  auto wanted = channel_settings(options);
  if (!wanted) co_return std::unexpected(std::move(wanted.error()));
  rdma::ChannelSettings settings = *wanted;
  settings.resolve_timeout = timeout;
  rdma::Channel channel(engine);
  std::error_code error;
  co_await rdma::async_connect(channel, at, settings, asio::redirect_error(asio::use_awaitable, error));
  if (error)
    co_return fail(Errc::unreachable, channel.error().what.empty() ? error.message() : channel.error().what);
  co_return make_rdma_transport(std::move(channel));
}

TransportPtr make_rdma_transport(rdma::Channel channel) {
  return std::make_shared<RdmaTransport>(std::move(channel));
}

}  // namespace weir::rpc

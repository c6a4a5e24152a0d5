#include "tensor/peer.hpp"

#include <algorithm>
#include <utility>

#include "tensor/listing.hpp"
#include "tensor/peer_core.hpp"
#include "tensor/rdma_link.hpp"
#include "tensor/tcp_link.hpp"
#include "tensor/tree.hpp"

namespace weir::tensor {
namespace {

using Clock = CallerDriven::Clock;
// After a CANCEL, for the hub to say that it writes no more.
constexpr std::chrono::milliseconds cancel_grace{1000};
constexpr std::chrono::seconds default_timeout{30};

Clock::time_point after(std::chrono::nanoseconds timeout) {
  const Clock::time_point now = Clock::now();
  const auto most = std::chrono::hours(24 * 365);
  return now + std::chrono::duration_cast<Clock::duration>(std::min<std::chrono::nanoseconds>(timeout, most));
}

}  // namespace

Peer::Core::~Core() {
  session_.reset();
  if (engine_ == nullptr) return;
  // Nobody else runs here any more; the link takes its leave.
  driven_.run_until([this] { return engine_->stats().connections == 0; },
                    Clock::now() + std::chrono::milliseconds(200));
}

Result<void> Peer::Core::open(const rdma::Result<rdma::Provider>& provider) {
  Result<Address> parsed = parse_address(address_);
  if (!parsed) return std::unexpected(parsed.error());
  parsed_ = std::move(*parsed);
  const Result<rdma::Endpoint> at = resolve(parsed_);
  if (!at) return std::unexpected(at.error());
  at_ = *at;
  if (parsed_.transport == Transport::rdma) {
    auto engine =
        provider ? rdma::Engine::open(driven_.io(), *provider, {}) : std::unexpected(provider.error());
    if (engine)
      engine_ = *engine;
    else if (!parsed_.fallback_tcp)
      return fail(Errc::device, engine.error().what);
    else
      no_engine_ = engine.error().what;
  }
  driven_.post([this] { reconnect(); });
  if (!driven_.run_until([this] { return settled_.load(); }, after(settings_.connect_timeout)))
    return fail(Errc::unreachable, address_ + " did not answer in time");
  if (generation_ == 0) return std::unexpected(end_);
  return {};
}

void Peer::Core::reconnect() {
  session_ = std::make_unique<PeerSession>(settings_.limits, *memory_, stats_, *this);
  dial(parsed_.transport);
}

void Peer::Core::dial(Transport by) {
  by_ = by;
  if (by == Transport::tcp)
    return session_->set_link(TcpLink::connect(driven_.io(), at_, *session_, [this] { on_up(); }));
  dial_rdma();
}

void Peer::Core::dial_rdma() {
  if (engine_ == nullptr) return session_->on_end(Error{Errc::device, no_engine_, 0});
  Result<RdmaLink*> link = RdmaLink::connect(*engine_, at_, {}, *session_, [this] { on_up(); });
  if (!link) return session_->on_end(link.error());
  session_->set_link(**link);
  if (!parsed_.fallback_tcp) return;
  patience_.expires_after(settings_.connect_timeout / 2);
  patience_.async_wait([this](std::error_code stopped) {
    if (!stopped && generation_ == 0) session_->break_off(Error{Errc::unreachable, "no answer by RDMA", 0});
  });
}

void Peer::Core::on_up() {
  patience_.cancel();
  if (session_->ended()) return;
  ++stats_.connects;
  stats_.transport = by_;
  generation_ = session_->generation();
  settled_ = true;
  driven_.progressed();
  session_->up();
}

// Whoever answers, and does not speak the protocol, is no reason to try TCP.
bool Peer::Core::dials_again(const Error& cause) {
  patience_.cancel();
  if (!parsed_.fallback_tcp || by_ != Transport::rdma) return false;
  if (cause.code != Errc::unreachable && cause.code != Errc::device) return false;
  ++stats_.fallbacks;
  settings_.say("no RDMA to " + rdma::text(at_) + " (" + cause.what + "); using TCP");
  driven_.post([this] { dial(Transport::tcp); });
  return true;
}

void Peer::Core::on_ended(const Error& cause) {
  end_ = cause;
  generation_ = 0;
  settled_ = true;
  driven_.progressed();
}

void Peer::Core::start(std::shared_ptr<Fetch> fetch) {
  driven_.post([this, fetch = std::move(fetch)]() mutable {
    if (session_ == nullptr || session_->is_over()) reconnect();
    session_->start(std::move(fetch));
  });
}

Result<Fetched> Peer::Core::wait(const std::shared_ptr<Fetch>& fetch, Clock::time_point deadline) {
  const auto done = [&fetch] { return fetch->done.load(std::memory_order_acquire); };
  if (!driven_.run_until(done, deadline)) {
    driven_.post([this, fetch] { session_->cancel(*fetch); });
    if (!driven_.run_until(done, after(cancel_grace))) {
      driven_.post([this, fetch] {
        if (!fetch->done) session_->break_off(Error{Errc::timed_out, "the hub does not answer", 0});
      });
      driven_.run_until(done, Clock::time_point::max());
    }
  }
  if (fetch->failed) return std::unexpected(*fetch->failed);
  return fetch->fetched;
}

bool Peer::Core::wait_any(std::span<const std::shared_ptr<Fetch>> fetches, Clock::time_point deadline) {
  return driven_.run_until(
      [&] {
        return std::ranges::any_of(
            fetches, [](const auto& each) { return each->done.load(std::memory_order_acquire); });
      },
      deadline);
}

void Peer::Core::drop(std::shared_ptr<Fetch> fetch) {
  driven_.post([this, fetch = std::move(fetch)] {
    if (session_ != nullptr) session_->cancel(*fetch);
  });
}

PeerStats Peer::Core::stats() {
  PeerStats copy;
  std::atomic<bool> done = false;
  driven_.post([&] {
    copy = stats_;
    done = true;
    driven_.progressed();
  });
  driven_.run_until([&] { return done.load(); }, Clock::time_point::max());
  return copy;
}

// --- the face

Peer::Peer(std::shared_ptr<Core> core) : core_(std::move(core)) {}
Peer::~Peer() = default;

Result<std::unique_ptr<Peer>> Peer::connect(std::string_view address,
                                            const rdma::Result<rdma::Provider>& provider,
                                            const PeerSettings& settings) {
  auto core = std::make_shared<Core>(std::string(address), settings);
  if (Result<void> opened = core->open(provider); !opened) return std::unexpected(opened.error());
  return std::unique_ptr<Peer>(new Peer(std::move(core)));
}

std::shared_ptr<Fetch> Peer::start(std::string_view name, FetchOptions options) {
  auto fetch = std::make_shared<Fetch>();
  fetch->name = name;
  fetch->newer_than = options.newer_than;
  fetch->generation = options.generation;
  fetch->wait = options.timeout && options.timeout->count() > 0;
  fetch->out = std::move(options.out);
  if (name.empty() || name.size() > most_name_bytes) {
    fetch->failed = Error{Errc::bad_array, "a name has 1 to 1024 bytes", 0};
    fetch->done = true;
  } else {
    core_->start(fetch);
  }
  return fetch;
}

Result<Fetched> Peer::wait(const std::shared_ptr<Fetch>& fetch, std::chrono::nanoseconds timeout) {
  return core_->wait(fetch, after(timeout));
}

Result<Fetched> Peer::fetch(std::string_view name, FetchOptions options) {
  const std::chrono::nanoseconds timeout = options.timeout.value_or(default_timeout);
  const std::shared_ptr<Fetch> fetch = start(name, std::move(options));
  return wait(fetch, fetch->wait ? timeout : default_timeout);
}

Result<std::uint64_t> Peer::push(std::string_view name, const TensorView& array,
                                 std::chrono::nanoseconds timeout) {
  return push_tree(name, std::span(&array, 1), timeout);
}

Result<std::uint64_t> Peer::push_tree(std::string_view name, std::span<const TensorView> tensors,
                                      std::chrono::nanoseconds timeout) {
  if (name.empty() || name.size() > most_name_bytes)
    return fail(Errc::bad_array, "a name has 1 to 1024 bytes");
  Result<Tree> tree = make_tree(tensors, nullptr);
  if (!tree) return std::unexpected(tree.error());
  Result<std::vector<std::byte>> block = encode(tree->metadata);
  if (!block) return std::unexpected(block.error());
  auto push = std::make_shared<Fetch>();
  push->name = name;
  push->pushed = std::move(tree->data);
  const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(*block));
  push->pushed_metadata =
      std::make_shared<const Source>(std::vector<Source::Piece>{Source::Piece(*kept)}, kept);
  core_->start(push);
  const Result<Fetched> done = core_->wait(push, after(timeout));
  if (!done) return std::unexpected(done.error());
  return done->version;
}

Result<std::vector<CatalogueEntry>> Peer::list() {
  const Result<Fetched> names = fetch(names_of_hub);
  if (!names) return std::unexpected(names.error());
  return parse_listing(names->data);
}

std::unique_ptr<Follower> Peer::follow(std::string_view name, std::uint64_t newer_than,
                                       std::uint64_t generation, std::uint32_t ahead) {
  return std::unique_ptr<Follower>(
      new Follower(core_, std::string(name), newer_than, generation, std::clamp(ahead, 1U, wire::slots / 2)));
}

std::uint64_t Peer::generation() const { return core_->generation(); }
PeerStats Peer::stats() const { return core_->stats(); }

}  // namespace weir::tensor

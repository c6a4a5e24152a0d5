#include "tensor/peer.hpp"

#include <utility>

#include "tensor/address.hpp"
#include "tensor/caller_driven.hpp"
#include "tensor/listing.hpp"
#include "tensor/rdma_link.hpp"
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

class Peer::Core final : public PeerSession::Owner {
 public:
  Core(std::string address, const PeerSettings& settings)
      : address_(std::move(address)),
        settings_(settings),
        memory_(std::make_shared<SpareMemory>(settings.spare_bytes)) {}
  ~Core() override;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  Result<void> open(const rdma::Provider& provider);
  void start(std::shared_ptr<Fetch> fetch);
  Result<Fetched> wait(const std::shared_ptr<Fetch>& fetch, Clock::time_point deadline);
  std::uint64_t generation() const { return generation_; }
  PeerStats stats();

 private:
  // Below: in the driving thread.
  void reconnect();
  void on_finished() override { driven_.progressed(); }
  void on_ended(const Error& cause) override;

  const std::string address_;
  const PeerSettings settings_;
  rdma::Endpoint at_;
  std::shared_ptr<SpareMemory> memory_;
  PeerStats stats_;
  std::atomic<std::uint64_t> generation_ = 0;
  std::atomic<bool> settled_ = false;  // the first connect came to something
  Error end_{};                        // of the newest session, before settled_
  CallerDriven driven_;
  rdma::Engine* engine_ = nullptr;
  std::unique_ptr<PeerSession> session_;  // null before the first connect
};

Peer::Core::~Core() {
  session_.reset();
  if (engine_ == nullptr) return;
  // Nobody else runs here any more; the link takes its leave.
  driven_.run_until([this] { return engine_->stats().connections == 0; },
                    Clock::now() + std::chrono::milliseconds(200));
}

Result<void> Peer::Core::open(const rdma::Provider& provider) {
  const Result<Address> parsed = parse_address(address_);
  if (!parsed) return std::unexpected(parsed.error());
  const Result<rdma::Endpoint> at = resolve(*parsed);
  if (!at) return std::unexpected(at.error());
  at_ = *at;
  auto engine = rdma::Engine::open(driven_.io(), provider, {});
  if (!engine) return fail(Errc::device, engine.error().what);
  engine_ = *engine;
  driven_.post([this] { reconnect(); });
  if (!driven_.run_until([this] { return settled_.load(); }, after(settings_.connect_timeout)))
    return fail(Errc::unreachable, address_ + " did not answer in time");
  if (generation_ == 0) return std::unexpected(end_);
  return {};
}

void Peer::Core::reconnect() {
  session_ = std::make_unique<PeerSession>(settings_.limits, *memory_, stats_, *this);
  const auto on_up = [this] {
    if (session_->ended()) return;
    ++stats_.connects;
    generation_ = session_->generation();
    settled_ = true;
    driven_.progressed();
    session_->up();
  };
  Result<RdmaLink*> link = RdmaLink::connect(*engine_, at_, {}, *session_, on_up);
  if (!link) return session_->on_end(link.error());
  session_->set_link(**link);
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

Peer::Peer(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Peer::~Peer() = default;

Result<std::unique_ptr<Peer>> Peer::connect(std::string_view address, const rdma::Provider& provider,
                                            const PeerSettings& settings) {
  auto core = std::make_unique<Core>(std::string(address), settings);
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

std::uint64_t Peer::generation() const { return core_->generation(); }
PeerStats Peer::stats() const { return core_->stats(); }

}  // namespace weir::tensor

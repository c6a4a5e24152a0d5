#include "tensor/hub.hpp"

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <condition_variable>
#include <list>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "rdma/engine/arrivals.hpp"
#include "rdma/engine/listener.hpp"
#include "tensor/address.hpp"
#include "tensor/arrays/tree.hpp"
#include "tensor/hub/serving_thread.hpp"
#include "tensor/link/rdma_link.hpp"
#include "tensor/link/tcp_listener.hpp"

namespace weir::tensor {
namespace {
using transport::Newcomers;
constexpr std::uint32_t most_closing = 64;

PushesUnderWay::Limits limits_of(const PushSettings& push) {
  return {.bytes_per_source = std::max(push.bytes_per_peer, push.bytes / 2),
          .patience = push.patience,
          .undisturbed = push.patience / 10};
}
}  // namespace

class Hub::Core {
 public:
  Core(const HubSettings& settings, PushRules rules, std::uint64_t generation)
      : settings_(settings),
        catalogue_({.keep = settings.keep, .most_names = settings.most_names}),
        pushes_{.rules = std::move(rules),
                .budget = std::make_shared<Budget>(settings.push.bytes),
                .bytes_per_peer = settings.push.bytes_per_peer,
                .memory = std::make_shared<SpareMemory>(settings.push.bytes_per_peer),
                .catalogue = catalogue_,
                .generation = generation,
                .published = [this](const Catalogue::Published& published) { tell(published); },
                .under_way = PushesUnderWay(limits_of(settings.push)),
                .now = [] { return std::chrono::steady_clock::now(); },
                .begun = [this] { watch_pushes(); },
                .sums = Sums(catalogue_, [this] { add_pushes(); })},
        shared_{.catalogue = catalogue_,
                .generation = generation,
                .pushes = pushes_,
                .access = settings_.access,
                .leases = leases_} {}

  Result<void> start(const rdma::Result<rdma::Provider>& provider, std::span<const Address> addresses);
  void stop();

  Result<std::uint64_t> publish(std::string_view name, std::span<const TensorView> tensors,
                                std::shared_ptr<const void> owner);
  Result<std::shared_ptr<const Lease>> lend(std::string_view name, std::span<const TensorView> tensors,
                                            std::shared_ptr<const void> owner, const LeaseSettings& settings);
  Result<Held> get(std::string_view name, std::uint64_t newer_than, std::chrono::nanoseconds timeout);
  bool withdraw(std::string_view name) { return catalogue_.withdraw(name); }
  const Catalogue& catalogue() const { return catalogue_; }
  std::uint64_t generation() const { return shared_.generation; }
  const std::string& local() const { return local_; }
  HubStats stats() {
    return thread_.run([this] {
      HubStats now = shared_.stats;
      now.direct_bytes = direct_bytes_;
      now.packed_bytes = packed_bytes_;
      now.pushes = pushes_.pushes;
      now.pushed_bytes = pushes_.pushed_bytes;
      now.pushed_held_bytes = pushes_.budget->used();
      return now;
    });
  }

 private:
  struct Accepted;
  Result<void> open(const rdma::Result<rdma::Provider>& provider, const Address& address);
  Result<rdma::Endpoint> open_both(const rdma::Result<rdma::Provider>& provider, const rdma::Endpoint& at);
  Result<rdma::Endpoint> open_rdma(const rdma::Result<rdma::Provider>& provider, const rdma::Endpoint& at);
  Result<rdma::Endpoint> open_tcp(const rdma::Endpoint& at, const transport::TlsContext& tls);
  void accept();
  rdma::Result<rdma::ConnectionLife*> admit(const RdmaLinkSettings& link);
  void take(RdmaLink& link);
  void take(TcpLink& link);
  void end(const HubSession& session);
  void look_again();
  void watch_pushes();
  void add_pushes();
  void take_back(const Lease& lease);
  void watch_leases();
  Result<Catalogue::Published> publish_as(const Catalogue::Terms& terms, std::string_view name,
                                          std::span<const TensorView> tensors,
                                          std::shared_ptr<const void> owner);
  void tell(const Catalogue::Published& published);
  VersionPtr newest(std::string_view name, std::uint64_t newer_than) const;

  const HubSettings settings_;
  Catalogue catalogue_;
  Leases leases_{[this](const Lease& lease) { take_back(lease); }};
  PushReceiver::Shared pushes_;
  HubSession::Shared shared_;
  std::string local_;
  transport::TlsContext tls_;  // none without a tls:// address
  std::atomic<std::uint64_t> direct_bytes_ = 0, packed_bytes_ = 0;
  std::atomic<bool> looking_ = false;  // look_again() is posted
  std::mutex getting_;
  std::condition_variable got_;  // signalled on each publication while get() waits
  std::atomic<std::uint32_t> getters_ = 0;
  ServingThread thread_{"weir-tensor"};
  // Used only on the hub's thread:
  std::shared_ptr<rdma::Arrivals> arrivals_;
  rdma::Engine* engine_ = nullptr;
  const std::shared_ptr<Newcomers> newcomers_ = std::make_shared<Newcomers>();  // that came by RDMA
  std::list<std::unique_ptr<rdma::Listener>> listeners_;
  std::list<std::unique_ptr<TcpListener>> tcp_listeners_;
  std::list<HubSession> sessions_;
  asio::steady_timer push_watch_{thread_.io()};
  bool watching_pushes_ = false;
  asio::steady_timer lease_watch_{thread_.io()};
};

// Accepts one connection after the other until the arrivals are closed.
struct Hub::Core::Accepted final : rdma::IoOp<std::error_code, rdma::ConnectionLife*> {
  explicit Accepted(Core& hub) : core(&hub) {}
  void complete(std::error_code failed, rdma::ConnectionLife* connection) override {
    Core* hub = core;
    delete this;
    if (connection != nullptr) hub->take(static_cast<RdmaLink&>(*connection));
    if (!failed) hub->accept();
  }
  void destroy() override { delete this; }
  Core* core;
};

Result<void> Hub::Core::start(const rdma::Result<rdma::Provider>& provider,
                              std::span<const Address> addresses) {
  if (names_tls({addresses.begin(), addresses.end()})) {
    Result<transport::TlsContext> tls = tls_context_of(settings_.tls, transport::TlsSide::server);
    if (!tls) return std::unexpected(tls.error());
    tls_ = std::move(*tls);
  }
  return thread_.run([&]() -> Result<void> {
    for (const Address& each : addresses)
      if (Result<void> opened = open(provider, each); !opened) return opened;
    return {};
  });
}

Result<void> Hub::Core::open(const rdma::Result<rdma::Provider>& provider, const Address& address) {
  const Result<rdma::Endpoint> at = resolve(address);
  if (!at) return std::unexpected(at.error());
  const Result<rdma::Endpoint> opened = address.fallback_tcp                   ? open_both(provider, *at)
                                        : address.transport == Transport::rdma ? open_rdma(provider, *at)
                                        : address.transport == Transport::tls  ? open_tcp(*at, tls_)
                                                                               : open_tcp(*at, nullptr);
  if (!opened) return std::unexpected(opened.error());
  if (!local_.empty()) local_ += ',';
  local_ += text_of(address, *opened);
  return {};
}

// Listens for TCP and RDMA at one port. For port 0, retries until a port is free for both.
Result<rdma::Endpoint> Hub::Core::open_both(const rdma::Result<rdma::Provider>& provider,
                                            const rdma::Endpoint& at) {
  for (int tries = 8;; --tries) {
    const Result<rdma::Endpoint> by_tcp = open_tcp(at, nullptr);
    if (!by_tcp) return by_tcp;
    const Result<rdma::Endpoint> by_rdma = open_rdma(provider, *by_tcp);
    if (by_rdma) return by_tcp;
    if (by_rdma.error().code == Errc::device) {
      settings_.say("no RDMA at " + rdma::text(*by_tcp) + " (" + by_rdma.error().what +
                    "); serving by TCP only");
      return by_tcp;
    }
    tcp_listeners_.pop_back();
    if (at.port() != 0 || tries == 0) return by_rdma;
  }
}

Result<rdma::Endpoint> Hub::Core::open_rdma(const rdma::Result<rdma::Provider>& provider,
                                            const rdma::Endpoint& at) {
  if (!provider) return fail(Errc::device, provider.error().what);
  if (engine_ == nullptr) {
    rdma::EngineSettings engine_settings;
    // One that leaves for another closes for a moment more.
    engine_settings.max_connections = settings_.max_connections + most_closing;
    engine_settings.warn = settings_.say;
    auto engine = rdma::Engine::open(thread_.io(), *provider, engine_settings);
    if (!engine) return fail(Errc::device, engine.error().what);
    engine_ = *engine;
  }
  const bool first = arrivals_ == nullptr;
  if (first) {
    const RdmaLinkSettings link{.generation = shared_.generation};
    arrivals_ = std::make_shared<rdma::Arrivals>(*engine_, [this, link] { return admit(link); }, 128);
  }
  auto listener = rdma::Listener::open(*engine_, at, arrivals_);
  if (!listener) {
    if (first) arrivals_.reset();
    return fail(Errc::unreachable, listener.error().what);
  }
  listeners_.push_back(std::move(*listener));
  if (first) accept();
  return listeners_.back()->local();
}

Result<rdma::Endpoint> Hub::Core::open_tcp(const rdma::Endpoint& at, const transport::TlsContext& tls) {
  auto listener = TcpListener::open(thread_.io(), at, tls, shared_.generation, settings_.max_connections,
                                    [this](TcpLink& link) { take(link); });
  if (!listener) return std::unexpected(listener.error());
  tcp_listeners_.push_back(std::move(*listener));
  return tcp_listeners_.back()->local();
}

rdma::Result<rdma::ConnectionLife*> Hub::Core::admit(const RdmaLinkSettings& link) {
  const bool full = engine_->stats().connections >= settings_.max_connections;
  if (full && newcomers_->make_room(Newcomers::Lack::place) == Newcomers::Room::none)
    return rdma::fail(rdma::Errc::connection_limit, "the hub has max_connections peers");
  return RdmaLink::accept(*engine_, link);
}

void Hub::Core::accept() {
  if (arrivals_) arrivals_->wait_accept(rdma::AcceptOpPtr(new Accepted(*this)));
}

void Hub::Core::take(RdmaLink& link) {
  link.is_newcomer(newcomers_->enter(link.remote().address().to_string(), [&link](Newcomers::Lack) {
    link.break_off(Error{Errc::closed, "the hub is full, and this peer had asked for nothing yet", 0});
    return Newcomers::Room::soon;
  }));
  link.set_events(sessions_.emplace_back(link, shared_, [this](HubSession& ended) { end(ended); }));
}

void Hub::Core::take(TcpLink& link) {
  ++shared_.stats.tcp_connections;
  const auto gone = [this](HubSession& ended) {
    --shared_.stats.tcp_connections;
    end(ended);
  };
  link.set_events(sessions_.emplace_back(link, shared_, gone));
}

void Hub::Core::end(const HubSession& session) {
  sessions_.remove_if([&](const HubSession& each) { return &each == &session; });
}

void Hub::Core::stop() {
  thread_.stop([this] {
    listeners_.clear();
    tcp_listeners_.clear();
    arrivals_.reset();
    push_watch_.cancel();
    lease_watch_.cancel();
    sessions_.clear();
  });
}

Result<std::uint64_t> Hub::Core::publish(std::string_view name, std::span<const TensorView> tensors,
                                         std::shared_ptr<const void> owner) {
  const auto published = publish_as({}, name, tensors, std::move(owner));
  if (!published) return std::unexpected(published.error());
  tell(*published);
  return published->version;
}

Result<Catalogue::Published> Hub::Core::publish_as(const Catalogue::Terms& terms, std::string_view name,
                                                   std::span<const TensorView> tensors,
                                                   std::shared_ptr<const void> owner) {
  Result<Tree> tree = make_tree(tensors, std::move(owner));
  if (!tree) return std::unexpected(tree.error());
  const auto published = catalogue_.publish(name, tree->metadata, std::move(tree->data), terms);
  if (!published) return published;
  packed_bytes_ += tree->packed_bytes;
  direct_bytes_ += tree->metadata.data_bytes - tree->packed_bytes;
  return published;
}

Result<std::shared_ptr<const Lease>> Hub::Core::lend(std::string_view name,
                                                     std::span<const TensorView> tensors,
                                                     std::shared_ptr<const void> owner,
                                                     const LeaseSettings& settings) {
  if (settings.readers == 0) return fail(Errc::bad_array, "what is lent has readers");
  auto lease = std::make_shared<Lease>(std::string(name), settings);
  Catalogue::Published published;
  const auto most = std::min<std::chrono::nanoseconds>(settings.time, std::chrono::hours(24 * 365));
  const auto until = Leases::TimePoint::clock::now() + most;
  const Result<std::uint64_t> version = leases_.lend(lease, until, [&]() -> Result<std::uint64_t> {
    const auto made = publish_as({.lease = lease}, name, tensors, std::move(owner));
    if (!made) return std::unexpected(made.error());
    published = *made;
    return made->version;
  });
  if (!version) return std::unexpected(version.error());
  tell(published);
  asio::post(thread_.io(), [this] { watch_leases(); });
  return lease;
}

// Those whose time is over, now and when the next one's is.
void Hub::Core::watch_leases() {
  leases_.end_late(Leases::TimePoint::clock::now());
  const std::optional<Leases::TimePoint> next = leases_.next();
  if (!next) return;
  lease_watch_.expires_at(*next);
  lease_watch_.async_wait([this](std::error_code stopped) {
    if (!stopped) watch_leases();
  });
}

void Hub::Core::take_back(const Lease& lease) {
  catalogue_.revoke(lease.name(), lease.version());
  tell({.version = lease.version(), .revoked = true});
}

// A waiter increments the count before it looks, so either it sees this version or we see the waiter.
void Hub::Core::tell(const Catalogue::Published& published) {
  if ((published.revoked || shared_.waiting > 0) && !looking_.exchange(true))
    asio::post(thread_.io(), [this] { look_again(); });
  if (getters_ == 0) return;
  const std::lock_guard lock(getting_);
  got_.notify_all();
}

VersionPtr Hub::Core::newest(std::string_view name, std::uint64_t newer_than) const {
  VersionPtr newest = catalogue_.find(name).newest;
  return newest != nullptr && newest->number > newer_than ? newest : nullptr;
}

Result<Held> Hub::Core::get(std::string_view name, std::uint64_t newer_than,
                            std::chrono::nanoseconds timeout) {
  VersionPtr version = newest(name, newer_than);
  if (version == nullptr && timeout.count() > 0) {
    const auto most = std::min<std::chrono::nanoseconds>(timeout, std::chrono::hours(24 * 365));
    ++getters_;
    std::unique_lock lock(getting_);
    got_.wait_for(lock, most, [&] { return (version = newest(name, newer_than)) != nullptr; });
    --getters_;
  }
  if (version == nullptr && catalogue_.find(name).newest == nullptr)
    return fail(Errc::not_published, "there is no '" + std::string(name) + "'");
  if (version == nullptr)
    return fail(Errc::timed_out, "there is no version newer than " + std::to_string(newer_than));
  Result<std::vector<std::byte>> block = version->metadata_source->copy();
  if (!block) return std::unexpected(block.error());
  Result<Metadata> metadata = parse_metadata(*block);
  if (!metadata) return std::unexpected(metadata.error());
  Held held{version->number, std::make_shared<const Metadata>(std::move(*metadata)), {}, version};
  const std::span<const Source::Piece> pieces = version->data->pieces();
  if (pieces.size() <= 1) {
    if (!pieces.empty()) held.data = pieces[0];
    return held;
  }
  Result<std::vector<std::byte>> whole = version->data->copy();
  if (!whole) return std::unexpected(whole.error());
  auto copy = std::make_shared<const std::vector<std::byte>>(std::move(*whole));
  held.data = *copy;
  held.memory = std::move(copy);
  return held;
}

// While pushes are under way, looks for those that stand still.
void Hub::Core::watch_pushes() {
  if (std::exchange(watching_pushes_, true)) return;
  push_watch_.expires_after(settings_.push.patience / 8);
  push_watch_.async_wait([this](std::error_code stopped) {
    if (stopped) return;
    watching_pushes_ = false;
    pushes_.under_way.end_late(pushes_.now());
    if (!pushes_.under_way.empty()) watch_pushes();
  });
}

// One step, so that what else waits for the thread comes between two.
void Hub::Core::add_pushes() {
  asio::post(thread_.io(), [this] {
    pushes_.sums.step();
    if (!pushes_.sums.empty()) add_pushes();
  });
}

void Hub::Core::look_again() {
  looking_ = false;  // cleared first, so that a version published from now on posts another look
  for (HubSession& each : sessions_) each.look_again();
}

// --- the public class

Hub::Hub(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Hub::~Hub() { core_->stop(); }

Result<std::unique_ptr<Hub>> Hub::listen(std::string_view address,
                                         const rdma::Result<rdma::Provider>& provider,
                                         const HubSettings& settings) try {
  const Result<std::vector<Address>> parsed = parse_addresses(address);
  if (!parsed) return std::unexpected(parsed.error());
  Result<PushRules> rules = PushRules::make(settings.push);
  if (!rules) return std::unexpected(rules.error());
  std::random_device random;
  const std::uint64_t generation = (std::uint64_t{random()} << 32 | random()) | 1;  // 0 means "no hub"
  std::unique_ptr<Hub> hub(new Hub(std::make_unique<Core>(settings, std::move(*rules), generation)));
  if (Result<void> started = hub->core_->start(provider, *parsed); !started)
    return std::unexpected(started.error());
  return hub;
} catch (const std::system_error& refused) {  // no thread, or no descriptor for its io_context
  return fail(Errc::too_much, std::string("cannot start the hub: ") + refused.what());
}

std::string Hub::address() const { return core_->local(); }
std::uint64_t Hub::generation() const { return core_->generation(); }

Result<std::uint64_t> Hub::publish(std::string_view name, const TensorView& array,
                                   std::shared_ptr<const void> owner) {
  return core_->publish(name, std::span(&array, 1), std::move(owner));
}

Result<std::uint64_t> Hub::publish_tree(std::string_view name, std::span<const TensorView> tensors,
                                        std::shared_ptr<const void> owner) {
  return core_->publish(name, tensors, std::move(owner));
}

Result<Held> Hub::get(std::string_view name, std::uint64_t newer_than, std::chrono::nanoseconds timeout) {
  return core_->get(name, newer_than, timeout);
}

Result<std::shared_ptr<const Lease>> Hub::lend(std::string_view name, const TensorView& array,
                                               std::shared_ptr<const void> owner,
                                               const LeaseSettings& settings) {
  return core_->lend(name, std::span(&array, 1), std::move(owner), settings);
}
Result<std::shared_ptr<const Lease>> Hub::lend_tree(std::string_view name,
                                                    std::span<const TensorView> tensors,
                                                    std::shared_ptr<const void> owner,
                                                    const LeaseSettings& settings) {
  return core_->lend(name, tensors, std::move(owner), settings);
}
bool Hub::withdraw(std::string_view name) { return core_->withdraw(name); }
std::vector<CatalogueEntry> Hub::list() const { return core_->catalogue().list(SIZE_MAX); }
HubStats Hub::stats() const { return core_->stats(); }
MemoryTiers Hub::memory() const { return core_->catalogue().memory(); }
std::uint64_t Hub::live_bytes() const { return core_->catalogue().live_bytes(); }

}  // namespace weir::tensor

#include "tensor/hub.hpp"

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <condition_variable>
#include <list>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "rdma/arrivals.hpp"
#include "rdma/listener.hpp"
#include "tensor/address.hpp"
#include "tensor/rdma_link.hpp"
#include "tensor/serving_thread.hpp"
#include "tensor/tree.hpp"

namespace weir::tensor {

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
                .published = [this](const Catalogue::Published& published) { tell(published); }},
        shared_{.catalogue = catalogue_, .generation = generation, .pushes = pushes_} {}

  Result<void> start(const rdma::Provider& provider, const rdma::Endpoint& at);
  void stop();

  Result<std::uint64_t> publish(std::string_view name, std::span<const TensorView> tensors,
                                std::shared_ptr<const void> owner);
  Result<Held> get(std::string_view name, std::uint64_t newer_than, std::chrono::nanoseconds timeout);
  bool withdraw(std::string_view name) { return catalogue_.withdraw(name); }
  const Catalogue& catalogue() const { return catalogue_; }
  std::uint64_t generation() const { return shared_.generation; }
  const rdma::Endpoint& local() const { return local_; }
  HubStats stats() {
    return thread_.run([this] {
      HubStats now = shared_.stats;
      now.pushes = pushes_.pushes;
      now.pushed_bytes = pushes_.pushed_bytes;
      now.pushed_held_bytes = pushes_.budget->used();
      return now;
    });
  }

 private:
  struct Accepted;
  void accept();
  void take(RdmaLink& link);
  void look_again();
  void tell(const Catalogue::Published& published);
  VersionPtr newest(std::string_view name, std::uint64_t newer_than) const;

  const HubSettings settings_;
  Catalogue catalogue_;
  PushReceiver::Shared pushes_;
  HubSession::Shared shared_;
  rdma::Endpoint local_;
  std::atomic<bool> looking_ = false;  // look_again() is on its way
  std::mutex getting_;
  std::condition_variable got_;  // a version is there that get() may wait for
  std::atomic<std::uint32_t> getters_ = 0;
  ServingThread thread_{"weir-tensor"};
  // Of the thread:
  std::shared_ptr<rdma::Arrivals> arrivals_;
  std::unique_ptr<rdma::Listener> listener_;
  std::list<HubSession> sessions_;
};

// Takes one connection after the other until the arrivals are gone.
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

Result<void> Hub::Core::start(const rdma::Provider& provider, const rdma::Endpoint& at) {
  Result<void> started = thread_.run([&]() -> Result<void> {
    rdma::EngineSettings engine_settings;
    engine_settings.max_connections = settings_.max_connections;
    auto engine = rdma::Engine::open(thread_.io(), provider, engine_settings);
    if (!engine) return fail(Errc::device, engine.error().what);
    const RdmaLinkSettings link{.generation = shared_.generation};
    arrivals_ = std::make_shared<rdma::Arrivals>(
        **engine, [engine = *engine, link] { return RdmaLink::accept(*engine, link); }, 128);
    auto listener = rdma::Listener::open(**engine, at, arrivals_);
    if (!listener) {
      arrivals_.reset();
      return fail(Errc::unreachable, listener.error().what);
    }
    listener_ = std::move(*listener);
    local_ = listener_->local();
    accept();
    return {};
  });
  return started;
}

void Hub::Core::accept() {
  if (arrivals_) arrivals_->wait_accept(rdma::AcceptOpPtr(new Accepted(*this)));
}

void Hub::Core::take(RdmaLink& link) {
  const auto gone = [this](HubSession& ended) {
    sessions_.remove_if([&](const HubSession& each) { return &each == &ended; });
  };
  link.set_events(sessions_.emplace_back(link, shared_, gone));
}

void Hub::Core::stop() {
  thread_.stop([this] {
    listener_.reset();
    arrivals_.reset();
    sessions_.clear();
  });
}

Result<std::uint64_t> Hub::Core::publish(std::string_view name, std::span<const TensorView> tensors,
                                         std::shared_ptr<const void> owner) {
  Result<Tree> tree = make_tree(tensors, std::move(owner));
  if (!tree) return std::unexpected(tree.error());
  const auto published = catalogue_.publish(name, tree->metadata, std::move(tree->data));
  if (!published) return std::unexpected(published.error());
  tell(*published);
  return published->version;
}

// Whoever waits counts itself before it looks, so either it saw this version or we see it.
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

void Hub::Core::look_again() {
  looking_ = false;  // before the look: what is published from now on asks again
  for (HubSession& each : sessions_) each.look_again();
}

// --- the face

Hub::Hub(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Hub::~Hub() { core_->stop(); }

Result<std::unique_ptr<Hub>> Hub::listen(std::string_view address, const rdma::Provider& provider,
                                         const HubSettings& settings) {
  const Result<Address> parsed = parse_address(address);
  if (!parsed) return std::unexpected(parsed.error());
  const Result<rdma::Endpoint> at = resolve(*parsed);
  if (!at) return std::unexpected(at.error());
  Result<PushRules> rules = PushRules::make(settings.push);
  if (!rules) return std::unexpected(rules.error());
  std::random_device random;
  const std::uint64_t generation = (std::uint64_t{random()} << 32 | random()) | 1;  // 0 is no hub
  std::unique_ptr<Hub> hub(new Hub(std::make_unique<Core>(settings, std::move(*rules), generation)));
  if (Result<void> started = hub->core_->start(provider, *at); !started)
    return std::unexpected(started.error());
  return hub;
}

std::string Hub::address() const { return "rdma://" + rdma::text(core_->local()); }
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

bool Hub::withdraw(std::string_view name) { return core_->withdraw(name); }
std::vector<CatalogueEntry> Hub::list() const { return core_->catalogue().list(SIZE_MAX); }
HubStats Hub::stats() const { return core_->stats(); }
std::uint64_t Hub::live_bytes() const { return core_->catalogue().live_bytes(); }

}  // namespace weir::tensor

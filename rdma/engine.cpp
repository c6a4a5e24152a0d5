#include "rdma/engine.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include "rdma/device/work_id.hpp"
#include "waiting/cpu_relax.hpp"
#include "waiting/turn.hpp"
#include "waiting/vain_tries.hpp"

namespace weir::rdma {
namespace {

constexpr int poll_batch = 32;
// A round ends after this many full batches even if there are more completions, so that sockets
// and timers get their turn.
constexpr int max_batches = 16;
constexpr int max_cm_events = 64;  // per wake-up
constexpr int max_notify_passes = 8;

template <class Action>
struct AtExit {
  Action action;
  ~AtExit() { action(); }
};
template <class Action>
AtExit(Action) -> AtExit<Action>;

}  // namespace

// Asio only waits on the descriptor; a verbs object owns it.
struct Engine::Watch {
  Watch(asio::io_context& io, int fd, std::function<void()> run)
      : descriptor(io, fd), on_ready(std::move(run)) {}
  ~Watch() { descriptor.release(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  asio::posix::stream_descriptor descriptor;
  std::function<void()> on_ready;
  bool waiting = false;
};

asio::execution_context::id Engine::id;

Result<Engine*> Engine::open(asio::io_context& io, const Provider&, const EngineSettings& settings) {
  return open(io, settings, std::make_shared<Guard>());
}

Result<Engine*> Engine::open_beside(const Engine& like, asio::io_context& io) {
  return open(io, like.settings_, like.guard_);
}

Result<Engine*> Engine::open(asio::io_context& io, const EngineSettings& settings,
                             std::shared_ptr<Guard> guard) {
  Result<EventChannel> channel = EventChannel::create();
  if (!channel) return std::unexpected(channel.error());
  auto engine = std::make_unique<Engine>(io, io, std::move(*channel), settings);
  engine->guard_ = std::move(guard);
  asio::add_service(static_cast<asio::execution_context&>(io), engine.get());
  return engine.release();
}

Engine::Engine(asio::execution_context& context, asio::io_context& io, EventChannel channel,
               const EngineSettings& settings)
    : asio::execution_context::service(context),
      io_(io),
      settings_(settings),
      cm_channel_(std::move(channel)),
      tick_(io),
      policy_(settings.idle_spin) {
  watches_.push_back(std::make_unique<Watch>(io_, cm_channel_.fd(), [this] { on_cm_events(); }));
}

Engine::~Engine() = default;

// The io_context is being destroyed: nothing may run any more, but streams owned by handlers
// may still be destroyed.
void Engine::shutdown() {
  shut_down_ = true;
  for (Slot& slot : slots_) {
    if (!slot.connection) continue;
    slot.connection->destroy_ops();
    // A handler may have owned the stream; then a connection that was not yet established is already gone.
    if (slot.connection) slot.connection->end(Errc::closed, "the io_context is gone");
  }
  watches_.clear();
  see_off();
  if (!leaving_.empty()) keep_for_ever();
}

// The program must be able to end while a peer is stopped. But memory that the peer may still write to must
// not be reused, so it stays until the process is gone.
void Engine::keep_for_ever() {
  for (ConnectionLife* each : leaving_) (void)slots_[slot_of(each->tag())].connection.release();
  leaving_.clear();
  (void)new auto(devices_);                        // including the pools
  (void)new EventChannel(std::move(cm_channel_));  // of the kept identifiers
}

EngineStats Engine::stats() const {
  EngineStats stats = stats_;
  stats.trespasses = guard_->trespasses.total();
  stats.leaving = static_cast<std::uint32_t>(leaving_.size());
  stats.connections = static_cast<std::uint32_t>(slots_.size() - free_slots_.size());
  for (const auto& device : devices_) {
    const MemoryPoolStats& pool = device->pool().stats();
    stats.pool.slab_bytes += pool.slab_bytes;
    stats.pool.used_bytes += pool.used_bytes;
    stats.pool.slabs += pool.slabs;
    stats.pool.blocks += pool.blocks;
    stats.pool.slabs_returned += pool.slabs_returned;
    stats.pool.refused += pool.refused;
    for (const auto& each : device->shared_receives()) stats.shared += each->stats();
  }
  return stats;
}

// --- connections

Result<std::uint32_t> Engine::take_slot() {
  if (free_slots_.empty()) {
    if (slots_.size() >= settings_.max_connections || slots_.size() > slot_of(~std::uint64_t{0}))
      return fail(Errc::connection_limit,
                  std::to_string(slots_.size()) + " RDMA connections are open, the limit");
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  return index;
}

void Engine::keep(std::uint32_t slot, std::unique_ptr<ConnectionLife> connection,
                  std::chrono::milliseconds keepalive) {
  slots_[slot].connection = std::move(connection);
  ++stats_.connections_made;
  if (keepalive.count() > 0) tick_period_ = std::min(tick_period_, keepalive);
  opened();
}

Result<ConnectionLife*> Engine::admit(const MakeConnection& make, std::chrono::milliseconds keepalive) {
  const Result<std::uint32_t> slot = take_slot();
  if (!slot) return std::unexpected(slot.error());
  std::unique_ptr<ConnectionLife> made = make(make_tag(*slot, slots_[*slot].generation));
  ConnectionLife* connection = made.get();
  keep(*slot, std::move(made), keepalive);
  return connection;
}

ConnectionLife* Engine::find(std::uint64_t tag) {
  const std::uint32_t index = slot_of(tag);
  if (index >= slots_.size() || slots_[index].generation != generation_of(tag)) return nullptr;
  return slots_[index].connection.get();
}

void Engine::discard(ConnectionLife& connection) {
  const std::uint32_t index = slot_of(connection.tag());
  Slot& slot = slots_[index];
  if (slot.connection.get() != &connection) return;
  discarded_.push_back(std::move(slot.connection));
  ++slot.generation;
  free_slots_.push_back(index);
  kick();
}

Result<Device*> Engine::device_for(ibv_context* context) {
  for (const auto& device : devices_)
    if (device->context() == context) return device.get();
  Result<std::unique_ptr<Device>> device = Device::open(context, settings_);
  if (!device) return std::unexpected(device.error());
  devices_.push_back(std::move(*device));
  Device& opened_device = *devices_.back();
  watches_.push_back(std::make_unique<Watch>(io_, opened_device.channel().fd(),
                                             [this, &opened_device] { on_device_signal(opened_device); }));
  if (open_ > 0) watch(*watches_.back());
  return &opened_device;
}

void Engine::on_trespass(const Endpoint& local, const Endpoint& remote) {
  const Trespasses::Counted counted = guard_->trespasses.count(local, remote, now());
  if (!counted.news) return;
  std::string line =
      "RDMA: " + text(remote) + " tried to reach memory that it has no right to; its connection was ended";
  if (counted.shuts)
    line += ". That was the third time from this address: its connections are refused for a minute";
  if (settings_.warn)
    settings_.warn(line);
  else
    std::fprintf(stderr, "weir: %s\n", line.c_str());
}

Result<CmId> Engine::make_id() { return CmId::create(cm_channel_); }

// --- what keeps run() going

void Engine::opened() {
  if (open_++ > 0) return;
  for (const auto& each : watches_) watch(*each);
  start_tick();
}

void Engine::closed() {
  if (--open_ > 0 || shut_down_) return;
  for (const auto& each : watches_) each->descriptor.cancel();
  tick_.cancel();
  kick();  // once more, to sweep up
}

void Engine::watch(Watch& watched) {
  if (std::exchange(watched.waiting, true)) return;
  const auto on_wait = [this, &watched](const std::error_code& failed) {
    watched.waiting = false;
    if (open_ == 0) return;
    // Runs even if the code below throws, or if the wait was cancelled but a connection was opened since.
    const AtExit wait_again{[&] {
      if (open_ > 0) watch(watched);
    }};
    if (!failed) watched.on_ready();
  };
  watched.descriptor.async_wait(asio::posix::stream_descriptor::wait_read, on_wait);
}

void Engine::on_device_signal(Device& device) {
  ++stats_.wake_ups;
  device.channel().take_event();
  busy_ = true;
  if (!shut_down_ && !std::exchange(polling_, true)) poll_round();
}

void Engine::on_cm_events() {
  for (int i = 0; i < max_cm_events; ++i) {
    const std::optional<CmEvent> event = cm_channel_.next();
    if (!event) return;
    // A connect request carries its listener's context; other events carry their own identifier's context.
    if (auto* owner = static_cast<CmOwner*>(event->id->context); owner != nullptr) owner->on_cm_event(*event);
  }
}

void Engine::start_tick() {
  tick_.expires_after(tick_period_);
  tick_.async_wait([this](const std::error_code& cancelled) {
    if (cancelled || open_ == 0) return;
    on_tick();
    start_tick();
  });
}

void Engine::on_tick() {
  see_off();
  const Clock::time_point time = now();
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].connection) slots_[i].connection->on_tick(time);
  for (const auto& device : devices_) {
    for (const auto& each : device->shared_receives()) each->refill();
    device->pool().trim();
  }
}

// --- polling

void Engine::kick() {
  busy_ = true;
  if (shut_down_ || std::exchange(polling_, true)) return;
  asio::post(io_, [this] { poll_round(); });
}

void Engine::mark_dirty(ConnectionLife& connection) {
  dirty_.push_back(&connection);
  if (!in_round_) kick();
}

void Engine::await_empty(ConnectionLife& connection) {
  if (std::ranges::find(awaiting_empty_, &connection) == awaiting_empty_.end())
    awaiting_empty_.push_back(&connection);
  kick();
}

void Engine::poll_round() {
  ++stats_.rounds;
  // A handler that throws leaves io_context::run(). A caller that calls run() again must find
  // the engine still polling.
  bool again = true;
  const AtExit go_on{[&] {
    in_round_ = false;
    polling_ = again;
    if (again) asio::post(io_, [this] { poll_round(); });
  }};
  in_round_ = true;
  const std::uint64_t before = stats_.completions;
  const bool kicked = std::exchange(busy_, false);
  const bool unfinished = poll_for_a_while();
  see_off();
  sweep();
  in_round_ = false;

  const bool more = unfinished || busy_ || !dirty_.empty();
  if (open_ == 0 && !more && discarded_.empty()) {
    again = false;  // there will be no tick either
    for (const auto& device : devices_) device->pool().return_idle(settings_.pool.keep_bytes);
    return;
  }
  const Clock::time_point time = now();
  const waiting::PollPolicy::Next next =
      policy_.after_round(time, kicked || more || stats_.completions != before);
  if (more) return;
  if (next == waiting::PollPolicy::Next::sleep) {
    again = !fell_asleep();
  } else if (!slow_tries_) {  // packets reach this thread without the peer's, and a yield may cost a slice
    sched_yield();
    policy_.yielded(time, now());
  }
}

// Polls until it was in vain for long enough (false), or until others should get their turn (true).
bool Engine::poll_for_a_while() {
  const Clock::time_point begin = now();
  const waiting::Turn turn(begin);
  run_notifications();
  slow_tries_ = false;
  if (settings_.idle_spin == std::chrono::microseconds::zero()) {
    poll_once();
    return false;  // fell_asleep() looks once more anyway
  }
  int batches = 0;
  waiting::VainTries tries(policy_.contended() ? 1 : settings_.spin_tries, begin);
  for (bool again = true; again;) {
    if (poll_once()) {
      const Clock::time_point time = now();
      if (++batches == max_batches || turn.over(time)) return true;
      tries.found(time);
    } else if ((again = tries.again([this] { return now(); }))) {
      waiting::cpu_relax();
    }
  }
  slow_tries_ = tries.slow();
  return false;
}

bool Engine::fell_asleep() {
  for (const auto& device : devices_)
    for (const auto& queue : device->queues()) queue->cq.arm(queue->wake == Device::Wake::solicited);
  if (poll_once() || busy_ || !dirty_.empty()) return false;
  ++stats_.sleeps;
  return true;
}

bool Engine::poll_once() {
  bool any = false;
  for (const auto& device : devices_)
    for (const auto& queue : device->queues())
      any |= queue->receives != nullptr ? poll_shared(*queue) : poll(*queue);
  if (any) run_notifications();
  return any;
}

bool Engine::poll(Device::Queue& queue) {
  std::array<ibv_wc, poll_batch> completions;
  const int count = queue.cq.poll(completions);
  if (count > 0) {
    stats_.completions += static_cast<std::uint64_t>(count);
    for (const ibv_wc& completion : std::span(completions).first(static_cast<std::size_t>(count)))
      if (ConnectionLife* connection = find(WorkId::decode(completion.wr_id).tag)) {
        connection->heard(completion);
        connection->on_completion(completion);
      }
  }
  if (count == poll_batch) return true;
  seen_empty(queue);
  return count > 0;
}

bool Engine::poll_shared(Device::Queue& queue) {
  const std::size_t count = queue.receives->poll(poll_batch);
  stats_.completions += count;
  if (count == poll_batch) return true;
  seen_empty(queue);
  return count > 0;
}

void Engine::seen_empty(Device::Queue& queue) {
  Device::saw_empty(queue);
  if (!awaiting_empty_.empty()) {
    const auto ours = std::ranges::partition(
        awaiting_empty_, [&](ConnectionLife* each) { return each->awaited_queue() != &queue; });
    const std::vector<ConnectionLife*> emptied(ours.begin(), ours.end());
    awaiting_empty_.erase(ours.begin(), ours.end());
    for (ConnectionLife* connection : emptied) connection->on_queue_empty();
  }
}

void Engine::run_notifications() {
  if (dirty_.empty()) return;
  const waiting::Turn turn(now());
  for (int pass = 0; pass < max_notify_passes && !dirty_.empty(); ++pass) {
    if (pass > 0 && turn.over(now())) return;  // poll_round() continues
    notifying_.swap(dirty_);
    std::size_t told = 0;
    const AtExit keep_the_rest{[&] {  // if a notification throws
      dirty_.insert(dirty_.end(), notifying_.begin() + static_cast<std::ptrdiff_t>(told), notifying_.end());
      notifying_.clear();
    }};
    while (told < notifying_.size()) notifying_[told++]->notify();
  }
}

void Engine::see_off() {
  if (leaving_.empty()) return;
  std::vector<ConnectionLife*> inside = std::exchange(leaving_, {});
  std::erase_if(inside, [](ConnectionLife* each) { return each->try_leave(); });
  leaving_.insert(leaving_.end(), inside.begin(), inside.end());
}

// Frees discarded connections after removing them from all lists.
void Engine::sweep() {
  if (discarded_.empty()) return;
  for (const auto& gone : discarded_) {
    std::erase(awaiting_empty_, gone.get());
    std::erase(dirty_, gone.get());
  }
  discarded_.clear();
}

}  // namespace weir::rdma

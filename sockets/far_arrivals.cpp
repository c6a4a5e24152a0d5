#include "sockets/far_arrivals.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include "sockets/calls/system_calls.hpp"
#include "sockets/waiter.hpp"

namespace weir::sockets {
namespace {

constexpr std::uint32_t least_links = 16;         // smallest number of links that a queue is made for
constexpr std::uint32_t not_its_connections = 1;  // a bit of the service thread's waiter

// Where this thread sleeps. A signal handler may leave the sleep by longjmp(), or the thread may be cancelled
// in it: the thread then counts as asleep until it sleeps again or ends.
struct AsleepAt {
  FarArrivals* it = nullptr;
  ~AsleepAt() {
    if (it != nullptr) it->awake();
  }
};
thread_local AsleepAt asleep_at;

bool never_waits(int fd) {
  const int flags = system_calls().fcntl(fd, F_GETFL);
  return system_calls().fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace

std::optional<FarArrivals::Seat> FarArrivals::join(Receiver& link, ibv_context* device,
                                                   std::uint32_t service) {
  const std::scoped_lock lock(mutex_);
  if (channel_ == nullptr) {
    ibv_comp_channel* const made = device != nullptr ? ibv_create_comp_channel(device) : nullptr;
    if (made == nullptr) return std::nullopt;
    if (!never_waits(made->fd)) {
      ibv_destroy_comp_channel(made);
      return std::nullopt;
    }
    channel_ = made;
  }
  if (channel_->context != device) return std::nullopt;
  const auto wanted = static_cast<int>((links_.size() + 1) * receives_a_link);
  if (queue_ == nullptr)
    queue_ = ibv_create_cq(device, static_cast<int>(least_links * receives_a_link), nullptr, channel_, 0);
  if (queue_ == nullptr ||
      (wanted > queue_->cqe && ibv_resize_cq(queue_, 2 * wanted) != 0 && ibv_resize_cq(queue_, wanted) != 0))
    return std::nullopt;
  service_.store(service);
  const std::uint64_t number = next_number_++;
  links_[number] = &link;
  return Seat{queue_, number};
}

void FarArrivals::leave(std::uint64_t number) {
  const std::scoped_lock lock(mutex_);
  take();  // its completions must not take up the queue
  links_.erase(number);
}

// With the mutex held. Takes at most one queue's worth, so peers that keep sending hold nobody here.
void FarArrivals::take() {
  if (queue_ == nullptr) return;
  std::array<ibv_wc, 32> completions;
  for (int taken = 0; taken < queue_->cqe;) {
    const int found = ibv_poll_cq(queue_, completions.size(), completions.data());
    if (found <= 0) break;
    taken += found;
    for (int i = 0; i < found; ++i) {
      const ibv_wc& one = completions[static_cast<std::size_t>(i)];
      const auto known = links_.find(one.wr_id / receives_a_link);
      if (known != links_.end() && known->second->take(one)) touched_.push_back(known->second);
    }
  }
  for (Receiver* const link : touched_) link->answer();
  touched_.clear();
}

void FarArrivals::look() {
  looks_.fetch_add(1, std::memory_order_relaxed);
  const std::scoped_lock lock(mutex_);
  take();
}

void FarArrivals::arm() {
  if (!armed_ && queue_ != nullptr) armed_ = ibv_req_notify_cq(queue_, 0) == 0;
}

// An armed queue raises one event.
void FarArrivals::disarm() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  if (!armed_ || ibv_get_cq_event(channel_, &queue, &context) != 0) return;
  ibv_ack_cq_events(queue, 1);
  armed_ = false;
}

// `others`: how many threads sleep here besides the caller. One that is not counted yet arms the queue
// itself, because it takes the mutex after that.
void FarArrivals::take_event_from(std::uint32_t others) {
  disarm();
  if (others > 0) arm();
  take();
}

void FarArrivals::will_sleep() {
  if (asleep_at.it != this) {
    asleep_at.it = this;
    sleepers_.fetch_add(1);
  }
  looks_.fetch_add(1, std::memory_order_relaxed);
  const std::scoped_lock lock(mutex_);
  arm();
  take();  // after arming: what came before raises no event
}

void FarArrivals::awake() {
  if (asleep_at.it != this) return;
  asleep_at.it = nullptr;
  if (sleepers_.fetch_sub(1) == 1) call_service(Service::away);
}

void FarArrivals::woken() {
  const int before = errno;
  looks_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::scoped_lock lock(mutex_);
    take_event_from(sleepers_.load() - (asleep_at.it == this ? 1 : 0));
  }
  call_service(Service::serves);  // the service thread still sleeps, maybe with nothing armed
  errno = before;
}

void FarArrivals::always_serve() {
  if (always_.exchange(true)) return;
  call_service(Service::away);
  call_service(Service::serves);
}

// Rings the service thread unless it will look again by itself.
void FarArrivals::call_service(Service if_it) {
  if (state_.load() != if_it || !state_.compare_exchange_strong(if_it, Service::naps)) return;
  ring_service();
}

void FarArrivals::ring_service() { ring(table_, service_.load() | not_its_connections); }

FarArrivals::Plan FarArrivals::plan() {
  if (queue_ == nullptr) return {};
  const auto looks = looks_.load(std::memory_order_relaxed);
  const bool looked = looks != seen_looks_, always = always_.load();
  seen_looks_ = looks;
  state_.store(Service::naps);
  if (looked && !always) return {.naps = true};
  if (sleepers_.load() > 0 && !always) {
    state_.store(Service::away);
    // Either the last sleeper to awake sees `away`, or we see that nobody sleeps.
    return {.naps = sleepers_.load() == 0};
  }
  state_.store(Service::serves);
  const std::scoped_lock lock(mutex_);
  arm();
  take();
  return {.on_fd = true};
}

void FarArrivals::take_event() {
  const std::scoped_lock lock(mutex_);
  take_event_from(sleepers_.load());
}

}  // namespace weir::sockets

#include "sockets/poll.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "sockets/connection_objects.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/event_set.hpp"
#include "sockets/far_arrivals.hpp"
#include "sockets/runtime.hpp"
#include "sockets/spin.hpp"
#include "sockets/system_calls.hpp"

namespace weir::sockets {
namespace {

constexpr short reads = POLLIN | POLLRDNORM;
constexpr int looks_a_kernel_look = 16;

struct One {
  std::size_t index;
  std::unique_ptr<Use> use;
};

class Round {
 public:
  explicit Round(std::span<pollfd> fds) : fds_(fds) {
    for (std::size_t i = 0; i < fds.size(); ++i) {
      auto use = std::make_unique<Use>(fds[i].fd);
      if (!*use || !(*use)->engaged()) continue;
      if (FarArrivals* const them = (*use)->arrivals(); them != nullptr) arrivals_ = them;
      engaged_.push_back({i, std::move(use)});
    }
  }
  bool any() const { return !engaged_.empty(); }
  bool any_by_ring() const {
    return std::ranges::any_of(engaged_, [](const One& one) {
      return (*one.use)->gets_by_ring() && !(*one.use)->peer_on_this_cpu();
    });
  }

  // Collects what rings have and, if `kernel_too`, what the kernel has.
  int look(bool kernel_too) {
    for (pollfd& one : fds_) one.revents = 0;
    if (kernel_too) {
      prepare(-1, -1);
      const timespec at_once{};
      if (system_calls().ppoll(asked_.data(), asked_.size(), &at_once, nullptr) > 0) take_kernels();
    }
    if (arrivals_ != nullptr) arrivals_->look();
    add_rings();
    return count();
  }

  // Sleeps in the kernel; a ring that has something wakes us. -1 with errno on failure.
  int sleep(const timespec& limit, const sigset_t* mask, Waiter* waiter) {
    for (const One& one : engaged_) (void)(*one.use)->watch(waiter->watcher(0));
    waiter->collect([](std::uint32_t) {});
    waiter->will_sleep();
    if (arrivals_ != nullptr) arrivals_->will_sleep();
    for (pollfd& one : fds_) one.revents = 0;
    add_rings();
    int found = count();
    if (found == 0) {
      prepare(waiter->fd(), arrivals_ != nullptr ? arrivals_->fd() : -1);
      const int result = system_calls().ppoll(asked_.data(), asked_.size(), &limit, mask);
      const int error = errno;
      waiter->awake();
      if (result > 0) {
        if (asked_.back().revents != 0) arrivals_->woken();
        if (asked_[fds_.size()].revents != 0) waiter->drain();
        take_kernels();
        add_rings();
      }
      found = result < 0 ? -1 : count();
      errno = error;
    }
    const int error = errno;
    waiter->awake();
    if (arrivals_ != nullptr) arrivals_->awake();
    for (const One& one : engaged_) (*one.use)->unwatch(waiter->watcher(0));
    errno = error;
    return found;
  }

 private:
  void prepare(int bell, int from_afar) {
    asked_.assign(fds_.begin(), fds_.end());
    asked_.push_back({bell, POLLIN, 0});
    asked_.push_back({from_afar, POLLIN, 0});
  }
  void take_kernels() {
    for (std::size_t i = 0; i < fds_.size(); ++i) fds_[i].revents = asked_[i].revents;
  }
  void add_rings() {
    for (const One& one : engaged_) {
      pollfd& it = fds_[one.index];
      if ((it.events & reads) != 0 && (*one.use)->readable(arrivals_ != nullptr))
        it.revents = static_cast<short>(it.revents | (it.events & reads));
    }
  }
  int count() const {
    return static_cast<int>(std::ranges::count_if(fds_, [](const pollfd& one) { return one.revents != 0; }));
  }

  std::span<pollfd> fds_;
  std::vector<One> engaged_;
  std::vector<pollfd> asked_;
  FarArrivals* arrivals_ = nullptr;
};

// Keeps connections from being engaged while we sleep without a waiter.
class Observed {
 public:
  explicit Observed(std::span<const pollfd> fds) {
    for (const pollfd& one : fds) {
      Connection* const it = Descriptors::find(one.fd);
      if (it == nullptr || it->plain()) continue;
      auto use = std::make_unique<Use>(one.fd);
      if (!*use) continue;
      auto gate = std::make_unique<Gate>((*use)->record().receive_gate);
      const bool shared = gate->share();
      engaging_ = engaging_ || !shared || (*use)->engaged();
      held_.push_back({std::move(use), std::move(gate)});
      if (engaging_) break;
    }
    if (engaging_) held_.clear();
  }
  bool engaging() const { return engaging_; }

 private:
  struct Held {
    std::unique_ptr<Use> use;
    std::unique_ptr<Gate> gate;  // must be released before the connection
    ~Held() { gate.reset(); }
    Held(std::unique_ptr<Use> u, std::unique_ptr<Gate> g) : use(std::move(u)), gate(std::move(g)) {}
    Held(Held&&) = default;
    Held& operator=(Held&&) = default;
  };
  std::vector<Held> held_;
  bool engaging_ = false;
};

}  // namespace

bool concerns_us(std::span<const pollfd> fds) {
  return std::ranges::any_of(fds, [](const pollfd& one) {
    if (!Descriptors::is_known(one.fd)) return false;
    const Connection* const it = Descriptors::find(one.fd);
    return it == nullptr || !it->plain();
  });
}

int wait_for_any(std::span<pollfd> fds, Timeout timeout, const sigset_t* mask) {
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  for (const pollfd& one : fds)
    if (EventSet* set = Descriptors::find_set(one.fd)) set->nested();
  SpinPolicy& spin = thread_spin();
  begin_looking(spin, begun);
  for (bool first = true;; first = false) {
    Round round(fds);
    if (!round.any()) {
      const auto limit = sleep_limit(timeout, begun, true);
      const Observed observed(fds);
      if (!observed.engaging()) {
        const timespec none{};
        return system_calls().ppoll(fds.data(), fds.size(), timeout ? (limit ? &*limit : &none) : nullptr,
                                    mask);
      }
      ::sched_yield();
      continue;
    }
    if (const int found = round.look(first || mask != nullptr); found > 0) return found;
    if (timeout && timeout->count() <= 0) return 0;
    for (int looks = 1; mask == nullptr && round.any_by_ring() && look_again(spin); ++looks)
      if (const int found = round.look(looks % looks_a_kernel_look == 0); found > 0) return found;
    const LentWaiter lent;
    Waiter* const waiter = lent.get();
    const auto limit = sleep_limit(timeout, begun, waiter != nullptr);
    if (!limit) return 0;
    if (waiter == nullptr) {
      ::nanosleep(&*limit, nullptr);
      continue;
    }
    if (const int found = round.sleep(*limit, mask, waiter); found != 0) return found;
  }
}

}  // namespace weir::sockets

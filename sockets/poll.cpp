#include "sockets/poll.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "sockets/calls/cancellation.hpp"
#include "sockets/calls/scratch.hpp"
#include "sockets/calls/system_calls.hpp"
#include "sockets/connection_objects.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/event_set.hpp"
#include "sockets/far_arrivals.hpp"
#include "sockets/lent_waiter.hpp"
#include "sockets/runtime.hpp"
#include "sockets/spin.hpp"

namespace weir::sockets {
namespace {

constexpr short reads = POLLIN | POLLRDNORM;
constexpr int looks_a_kernel_look = 16;

int sleep_in_kernel(std::span<pollfd> fds, const timespec* limit, const sigset_t* mask,
                    const Uncancelled& call) {
  const Cancellable sleeping(call);
  return system_calls().ppoll(fds.data(), fds.size(), limit, mask);
}

struct One {
  One(std::size_t of, int fd) : index(of), use(fd) {}
  std::size_t index;
  Use use;
};

class Round {
 public:
  static std::size_t bytes_for(std::size_t fds) {
    return Row<One>::bytes_for(fds) + Row<pollfd>::bytes_for(fds + 2);
  }

  Round(std::span<pollfd> fds, Scratch& scratch)
      : fds_(fds), engaged_(scratch, fds.size()), asked_(scratch, fds.size() + 2) {}

  void find_engaged() {
    engaged_.clear();
    for (std::size_t i = 0; i < fds_.size(); ++i) {
      if (Descriptors::find(fds_[i].fd) == nullptr) continue;
      const One& one = engaged_.emplace_back(i, fds_[i].fd);
      if (!one.use || !one.use->engaged())
        engaged_.pop_back();
      else if (FarArrivals* const them = one.use->arrivals(); them != nullptr)
        arrivals_ = them;
    }
  }
  bool any() const { return !engaged_.empty(); }
  bool any_by_ring() const {
    return std::ranges::any_of(
        engaged_, [](const One& one) { return one.use->gets_by_ring() && !one.use->peer_on_this_cpu(); });
  }

  // Collects what rings have and, if `kernel_too`, what the kernel has.
  int look(bool kernel_too) {
    for (pollfd& one : fds_) one.revents = 0;
    if (kernel_too) {
      prepare(-1, -1);
      const timespec at_once{};
      if (system_calls().ppoll(asked_.begin(), asked_.size(), &at_once, nullptr) > 0) take_kernels();
    }
    if (arrivals_ != nullptr) arrivals_->look();
    add_rings();
    return count();
  }

  // False: at least one of the connections will not wake us, because enough others wait for it.
  bool watch(Waiter& waiter) {
    bool all = true;
    for (const One& one : engaged_) all &= one.use->watch(waiter.watcher(0));
    return all;
  }
  void unwatch(Waiter& waiter) {
    for (const One& one : engaged_) one.use->unwatch(waiter.watcher(0));
  }

  // Sleeps in the kernel; a ring that has something wakes us if it is watched. -1 with errno on failure.
  int sleep(const timespec& limit, const sigset_t* mask, Waiter* waiter, const Uncancelled& call) {
    if (waiter != nullptr) {
      waiter->collect([](std::uint32_t) {});
      waiter->will_sleep();
    }
    if (arrivals_ != nullptr) arrivals_->will_sleep();
    for (pollfd& one : fds_) one.revents = 0;
    add_rings();
    int found = count();
    if (found == 0) {
      prepare(waiter != nullptr ? waiter->fd() : -1, arrivals_ != nullptr ? arrivals_->fd() : -1);
      const int result = sleep_in_kernel({asked_.begin(), asked_.size()}, &limit, mask, call);
      const int error = errno;
      if (waiter != nullptr) waiter->awake();
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
    if (waiter != nullptr) waiter->awake();
    if (arrivals_ != nullptr) arrivals_->awake();
    errno = error;
    return found;
  }

 private:
  void prepare(int bell, int from_afar) {
    asked_.clear();
    for (const pollfd& one : fds_) asked_.emplace_back(one);
    for (const int ours : {bell, from_afar}) asked_.emplace_back(pollfd{ours, POLLIN, 0});
  }
  void take_kernels() {
    for (std::size_t i = 0; i < fds_.size(); ++i) fds_[i].revents = asked_[i].revents;
  }
  void add_rings() {
    for (const One& one : engaged_) {
      pollfd& it = fds_[one.index];
      if ((it.events & reads) != 0 && one.use->readable(arrivals_ != nullptr))
        it.revents = static_cast<short>(it.revents | (it.events & reads));
    }
  }
  int count() const {
    return static_cast<int>(std::ranges::count_if(fds_, [](const pollfd& one) { return one.revents != 0; }));
  }

  std::span<pollfd> fds_;
  Row<One> engaged_;
  Row<pollfd> asked_;
  FarArrivals* arrivals_ = nullptr;
};

// The connections wake the waiter for as long as it lives; a thread may be cancelled in its sleep.
class Watching {
 public:
  Watching(Round& round, Waiter* waiter) : round_(round), waiter_(waiter) {
    all_ = waiter != nullptr && round.watch(*waiter);
  }
  ~Watching() {
    if (waiter_ != nullptr) round_.unwatch(*waiter_);
  }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
  bool all() const { return all_; }

 private:
  Round& round_;
  Waiter* const waiter_;
  bool all_ = false;
};

// Keeps connections from being engaged while we sleep without a waiter.
class Observed {
 public:
  static std::size_t bytes_for(std::size_t fds) { return Row<Held>::bytes_for(fds); }

  Observed(std::span<const pollfd> fds, Scratch& scratch) : held_(scratch, fds.size()) {}

  // False: one of them is being engaged, look again.
  bool hold(std::span<const pollfd> fds) {
    for (const pollfd& one : fds) {
      const Connection* const it = Descriptors::find(one.fd);
      if (it == nullptr || it->plain()) continue;
      Held& held = held_.emplace_back(one.fd);
      if (!held.use) {
        held_.pop_back();
        continue;
      }
      held.gate.emplace(held.use->record().receive_gate);
      if (held.gate->share() && !held.use->engaged()) continue;
      held_.clear();
      return false;
    }
    return true;
  }

 private:
  struct Held {
    explicit Held(int fd) : use(fd) {}
    Use use;
    std::optional<Gate> gate;  // must be released before the connection
  };
  Row<Held> held_;
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
  ::pthread_testcancel();
  const Uncancelled call;
  const auto begun = Clock::now();
  for (const pollfd& one : fds)
    if (EventSet* set = Descriptors::find_set(one.fd)) set->nested();
  PollBudget& budget = thread_budget();
  begin_looking(budget, begun);
  Scratch scratch(Round::bytes_for(fds.size()) + Observed::bytes_for(fds.size()));
  if (!scratch) {
    errno = ENOMEM;
    return -1;
  }
  Round round(fds, scratch);
  Observed observed(fds, scratch);
  for (bool first = true;; first = false) {
    round.find_engaged();
    if (!round.any()) {
      const auto limit = sleep_limit(timeout, begun, true);
      if (observed.hold(fds)) {
        const timespec none{};
        return sleep_in_kernel(fds, timeout ? (limit ? &*limit : &none) : nullptr, mask, call);
      }
      ::sched_yield();
      continue;
    }
    if (const int found = round.look(first || mask != nullptr); found > 0) return found;
    if (timeout && timeout->count() <= 0) return 0;
    for (int looks = 1; mask == nullptr && round.any_by_ring() && look_again(budget); ++looks)
      if (const int found = round.look(looks % looks_a_kernel_look == 0); found > 0) return found;
    const LentWaiter lent(table());
    const Watching watching(round, lent.get());
    const auto limit = sleep_limit(timeout, begun, watching.all());
    const int found = limit ? round.sleep(*limit, mask, lent.get(), call) : 0;
    if (found != 0 || !limit) return found;
  }
}

}  // namespace weir::sockets

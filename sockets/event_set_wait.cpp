// Waiting on an epoll set: what the rings have, what the kernel has, and in which order they are asked.
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "sockets/calls/system_calls.hpp"
#include "sockets/connection.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/event_set.hpp"
#include "sockets/far_arrivals.hpp"
#include "sockets/runtime.hpp"

namespace weir::sockets {
namespace {

constexpr unsigned looks_a_kernel_look = 16;  // look at the rings so often, while they have something
// While the rings have nothing and we look at them, a system call would take longer than many such looks.
constexpr std::chrono::microseconds longest_without_kernel{10};

constexpr std::uint32_t reading = EPOLLIN | EPOLLRDNORM, writing = EPOLLOUT | EPOLLWRNORM;

constexpr bool level(std::uint32_t wanted) { return (wanted & (EPOLLET | EPOLLONESHOT)) == 0; }

// Behind `have` events lie `more`. Leaves one event per descriptor, because at the first one the program may
// free what belongs to it. Returns how many are left.
int merge(epoll_event* events, int have, int more) {
  int total = have;
  for (int i = have; i < have + more; ++i) {
    const auto same = std::find_if(
        events, events + have, [&](const epoll_event& one) { return one.data.u64 == events[i].data.u64; });
    if (same != events + have)
      same->events |= events[i].events;
    else
      events[total++] = events[i];
  }
  return total;
}

}  // namespace

// Members of which only the kernel knows what is ready: it is asked about many of them at once.
class EventSet::Questions {
 public:
  explicit Questions(std::span<epoll_event> into) : into_(into) {}

  bool fits(int events) const { return count_ + static_cast<std::size_t>(events) < into_.size(); }
  bool full() const { return count_ == fds_.size(); }
  void add(Member& member, const Readiness& now) {
    fds_[count_] = {member.connection->descriptor(), static_cast<short>(now.unsure & poll_bits), 0};
    asked_[count_++] = {&member, now, member.connection->kernel_events().seen()};
  }
  // Adds what is ready behind the first `have` events; returns how many they are now.
  int ask(EventSet& set, int have) {
    if (count_ == 0) return have;
    const int before = errno;
    const timespec at_once{};
    const bool answered = system_calls().ppoll(fds_.data(), count_, &at_once, nullptr) >= 0;
    errno = before;
    const std::size_t count = std::exchange(count_, 0);
    for (std::size_t i = 0; answered && i < count; ++i) {
      One& one = asked_[i];
      const auto answer = static_cast<std::uint32_t>(fds_[i].revents);
      one.member->connection->kernel_events().absent(one.seen, one.now.unsure & ~answer);
      if ((one.now.unsure & ~answer & EPOLLOUT) != 0) one.member->connection->lacks_room().store(true);
      one.now.events |= answer & (one.now.unsure | EPOLLHUP | EPOLLERR);
      if (one.now.events != 0) into_[static_cast<std::size_t>(have++)] = set.report(*one.member, one.now);
    }
    return have;
  }

 private:
  struct One {
    Member* member;
    Readiness now;
    KernelEvents::Seen seen;
  };
  // The events of poll() and epoll have the same bits.
  static constexpr std::uint32_t poll_bits =
      EPOLLIN | EPOLLRDNORM | EPOLLOUT | EPOLLWRNORM | EPOLLPRI | EPOLLRDHUP;

  std::span<epoll_event> into_;
  std::array<pollfd, 64> fds_;
  std::array<One, 64> asked_;
  std::size_t count_ = 0;
};

// The kernel reports the rest, and room to write.
EventSet::Readiness EventSet::ready_beside_kernel(Member& member) const {
  const bool reads = (member.wanted & reading) != 0 && member.connection->readable(arrivals_ != nullptr);
  const bool writes = (member.wanted & EPOLLOUT) != 0 && member.connection->may_send_again();
  return {.events = (reads ? member.wanted & reading : 0) | (writes ? EPOLLOUT : 0u), .by_ring = reads};
}

EventSet::Readiness EventSet::ready_by_sentinel(Member& member) const {
  Connection& connection = *member.connection;
  const std::uint32_t reads = member.wanted & reading, writes = member.wanted & writing;
  const std::uint32_t fresh = std::exchange(member.fresh, 0);
  const bool rung = std::exchange(member.rung, false);
  const bool whole = std::exchange(member.changed, false) || (member.wanted & EPOLLET) == 0;
  const std::uint32_t kept = KernelEvents::bits(connection.kernel_events().seen());
  Readiness now;
  const bool unread = reads != 0 && (rung || whole) && connection.readable(arrivals_ != nullptr);
  // What the kernel reported may have been read meanwhile.
  now.by_ring = unread;
  if (unread || (fresh & kept & EPOLLIN) != 0) now.events |= reads;
  now.events |= fresh & (KernelEvents::ends & (member.wanted | EPOLLHUP | EPOLLERR));
  // A report of bytes names room to write as well, but is no edge of it. That of an end is one of everything.
  const bool room_again =
      (fresh & EPOLLOUT) != 0 && (connection.lacks_room().load(std::memory_order_relaxed) ||
                                  (fresh & (KernelEvents::ends & ~std::uint32_t{EPOLLPRI})) != 0);
  if (room_again || (writes != 0 && connection.may_send_again())) now.events |= writes;
  // An edge of one event reports the others that hold, too.
  if (!whole && now.events == 0) return now;
  if (connection.has_room()) now.events |= writes;
  if (!whole) return now;
  if ((kept & EPOLLIN) != 0) now.unsure |= reads;
  // The peer sends by TCP, or has ended its stream. What is known already must not hide that from the
  // program.
  if (now.events != 0 && fresh == 0 && !connection.gets_by_ring())
    now.unsure |= reads | (member.wanted & EPOLLRDHUP);
  now.unsure |= writes | (kept & KernelEvents::ends & (member.wanted | EPOLLHUP | EPOLLERR));
  now.unsure &= ~now.events;
  return now;
}

epoll_event EventSet::report(Member& member, const Readiness& now) {
  if (now.by_ring) turn_.kernels_events = member.connection->peer_on_this_cpu() ? max_kernels_events : 0;
  if ((member.wanted & EPOLLONESHOT) != 0) {
    member.disabled = true;
    epoll_event none{.events = EPOLLONESHOT, .data = member.data};
    if (member.sentinel == 0 && Descriptors::find(member.fd) == member.connection)
      system_calls().epoll_ctl(fd_, EPOLL_CTL_MOD, member.fd, &none);
  } else if (level(member.wanted)) {
    ready_.push_back(member);  // behind all others, until a look finds nothing
  }
  return {.events = now.events, .data = member.data};
}

// Collects what rings have into `into`; returns the number of events.
int EventSet::collect(std::span<epoll_event> into) {
  if (arrivals_ != nullptr) arrivals_->look();
  waiter_->collect([&](std::uint32_t bit) {
    if (bit >= by_bit_.size()) return;
    for (Member* const member : by_bit_[bit]) {
      member->rung = true;
      mark_ready(*member);
    }
  });
  int count = 0;
  Questions questions(into);
  for (std::size_t left = ready_.size(); left > 0 && questions.fits(count); --left) {
    Member& member = ready_.pop_front();
    if (member.disabled) continue;
    if (member.sentinel != 0 && member.connection->stays() != Reason::none &&
        Descriptors::find(member.fd) == member.connection)
      end_sentinel(member);
    const Readiness now = member.sentinel != 0 ? ready_by_sentinel(member) : ready_beside_kernel(member);
    if (now.unsure != 0)
      questions.add(member, now);
    else if (now.events != 0)
      into[static_cast<std::size_t>(count++)] = report(member, now);
    if (questions.full()) count = questions.ask(*this, count);
  }
  count = questions.ask(*this, count);
  turn_.since += static_cast<std::size_t>(count);
  turn_.was_full = static_cast<std::size_t>(count) == into.size();
  return count;
}

// Removes events that the kernel reports but the program must not see.
int EventSet::clean(epoll_event* events, int count) {
  int kept = 0;
  bool reported = false;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 == bell_data) {
      if (waiter_) waiter_->woken_by_edge();
      took_wake_ = true;
      continue;
    }
    if (events[i].data.u64 == arrivals_data) {
      if (arrivals_ != nullptr) arrivals_->woken();
      continue;
    }
    reported = true;
    if (take_report(events[i])) continue;
    const epoll_event event = events[i];
    if (!by_data_.empty()) {
      if (const auto found = by_data_.find(event.data.u64); found != by_data_.end()) {
        Member& member = *found->second;
        if (member.disabled) continue;  // its ring has reported it meanwhile
        if ((member.wanted & EPOLLONESHOT) != 0) member.disabled = true;
      }
    }
    events[kept++] = event;
  }
  turn_.had = kept > 0;
  if (reported) turn_.kernels_events = std::min(turn_.kernels_events + 1, max_kernels_events);
  turn_.since = 0;
  return kept;
}

// Whether to ask the kernel before the rings, which have something. Neither may hold up the other's members,
// however few events the program takes at a time: if the kernel had some, or there was no room for more, it
// comes next when each of the rings' ready members has had its turn.
bool EventSet::is_kernels_turn() {
  if (std::exchange(turn_.new_sentinel, false)) return true;
  if (ready_.empty() && !waiter_->anything()) return false;
  return ((turn_.had || turn_.was_full) && turn_.since >= ready_.size()) ||
         ++turn_.looks % looks_a_kernel_look == 0;
}

int EventSet::kernel_then_rings(epoll_event* events, int most) {
  const int found = kernel_wait(events, most, 0, nullptr);
  const std::scoped_lock lock(mutex_);
  const int all = append(events, clean(events, std::max(found, 0)), most);
  pass_on_wake();
  return all;
}

int EventSet::append(epoll_event* events, int have, int most) {
  return merge(events, have, collect({events + have, static_cast<std::size_t>(most - have)}));
}

// This thread has taken the event that wakes the set's waiter. Others may sleep in the kernel or on the
// set's descriptor, and a peer that rings now would cause no second one.
void EventSet::pass_on_wake() {
  if (!std::exchange(took_wake_, false) || !waiter_ || (sleepers_ == 0 && !nested_)) return;
  waiter_->will_sleep();
  if (waiter_->anything() || !ready_.empty()) ring(*table(), waiter_->watcher(no_members_bit));
}

int EventSet::kernel_wait(epoll_event* events, int most, int timeout_ms, const sigset_t* mask) {
  return system_calls().epoll_pwait(fd_, events, most, timeout_ms, mask);
}

// With the mutex held: announces that we sleep, then looks once more.
bool EventSet::idle() {
  waiter_->will_sleep();
  return !waiter_->anything() && ready_.empty();
}

// A thread that sleeps on the set, until it is awake or cancelled.
class EventSet::Sleeper {
 public:
  explicit Sleeper(EventSet& set) : set_(set) {
    const std::scoped_lock lock(set.mutex_);
    ++set.sleepers_;
  }
  ~Sleeper() {
    const std::scoped_lock lock(set_.mutex_);
    --set_.sleepers_;
    if (set_.arrivals_ != nullptr) set_.arrivals_->awake();
    const bool others = set_.sleepers_ > 0 || set_.nested_;
    if (set_.engaged_ > 0 && !others) set_.waiter_->awake();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

 private:
  EventSet& set_;
};

// Sleeps in the kernel, unless the rings have something. Returns what the kernel does.
int EventSet::sleep(epoll_event* events, int most, const Sleep& how, const Uncancelled& call) {
  const Sleeper sleeper(*this);
  bool sleeps = how.limit.has_value();
  {
    const std::scoped_lock lock(mutex_);
    if (sleeps && arrivals_ != nullptr) arrivals_->will_sleep();
    if (engaged_ > 0 && !idle()) sleeps = false;
  }
  const int wait_ms =
      !sleeps        ? 0
      : how.for_ever ? -1
                     : static_cast<int>(std::min<std::int64_t>(
                           INT_MAX, how.limit->tv_sec * 1000 + (how.limit->tv_nsec + 999'999) / 1'000'000));
  const Cancellable sleeping(call);
  return kernel_wait(events, most, wait_ms, how.mask);
}

int EventSet::wait(epoll_event* events, int most, Timeout timeout, const sigset_t* mask) {
  using Clock = std::chrono::steady_clock;
  if (most <= 0 || events == nullptr) return kernel_wait(events, most, 0, mask);
  ::pthread_testcancel();
  const Uncancelled call;
  const auto begun = Clock::now();
  const bool waits = !timeout || timeout->count() > 0;
  {
    const std::scoped_lock lock(mutex_);
    if (looking_pays() && waits) begin_looking(budget_, begun);
  }
  for (bool first = true;; first = false) {
    bool looks = false, kernels_turn = false, kernel_too = true;
    int have = 0;
    {
      const std::scoped_lock lock(mutex_);
      if (engaged_ > 0) {
        kernels_turn = is_kernels_turn();
        if (!kernels_turn) have = collect({events, static_cast<std::size_t>(most)});
        looks = looking_pays() && waits;
        const auto now = first ? begun : looking_thread().latest;
        kernel_too = kernels_turn || !looks || now - turn_.latest >= longest_without_kernel;
        if (have == 0 && kernel_too) turn_.latest = now;
      }
    }
    if (kernels_turn) have = kernel_then_rings(events, most);
    if (have > 0) return have;
    if (looks && mask == nullptr && look_again(budget_)) {
      if (!kernel_too || kernels_turn) continue;
      const int found = kernel_wait(events, most, 0, nullptr);
      const std::scoped_lock lock(mutex_);
      if (const int kept = clean(events, std::max(found, 0)); kept > 0) {
        const int all = append(events, kept, most);
        pass_on_wake();
        return all;
      }
      continue;
    }
    const auto limit = sleep_limit(timeout, begun, true);
    const int found = sleep(events, most, {.limit = limit, .for_ever = !timeout, .mask = mask}, call);
    const int error = errno;
    int kept = 0;
    {
      const std::scoped_lock lock(mutex_);
      kept = clean(events, std::max(found, 0));
      if (engaged_ > 0) {
        if (kept > 0) kept = append(events, kept, most);
        took_wake_ = true;  // a peer that rings wakes only one of us
        pass_on_wake();
      }
    }
    if (found < 0) {
      errno = error;
      return -1;
    }
    if (kept > 0) return kept;
    if (!limit) {
      const std::scoped_lock lock(mutex_);
      return engaged_ > 0 ? collect({events, static_cast<std::size_t>(most)}) : 0;
    }
  }
}

}  // namespace weir::sockets

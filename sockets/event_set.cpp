#include "sockets/event_set.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <utility>

#include "sockets/connection.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/far_arrivals.hpp"
#include "sockets/runtime.hpp"
#include "sockets/system_calls.hpp"

namespace weir::sockets {
namespace {

// Event data of the waiter's socket and of arrivals; no program's pointer or descriptor has these values.
constexpr std::uint64_t bell_data = 0x7765'6972'2062'656c;
constexpr std::uint64_t arrivals_data = 0x7765'6972'2066'6172;
constexpr unsigned looks_a_kernel_look = 16;  // look at the rings so often, while they have something
// While the rings have nothing and we look at them, a system call would take longer than many such looks.
constexpr std::chrono::microseconds longest_without_kernel{10};

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

int EventSet::control(int operation, int fd, epoll_event* event) {
  Connection* const connection = Descriptors::find(fd);
  if (EventSet* inner = Descriptors::find_set(fd); inner != nullptr && operation == EPOLL_CTL_ADD)
    inner->nested();
  if (connection == nullptr) return system_calls().epoll_ctl(fd_, operation, fd, event);
  const std::scoped_lock lock(mutex_);
  if (operation == EPOLL_CTL_DEL) {
    forget(fd);
    return system_calls().epoll_ctl(fd_, operation, fd, event);
  }
  const int result = system_calls().epoll_ctl(fd_, operation, fd, event);
  if (result != 0 || event == nullptr) return result;
  if (operation == EPOLL_CTL_ADD) {
    auto made = std::make_unique<Member>(Member{fd, connection, 0, {}});
    members_[fd] = std::move(made);
    const std::scoped_lock registrations(connection->registrations_mutex());
    connection->registrations().push_back({this, fd});
  }
  const auto found = members_.find(fd);
  if (found == members_.end()) return result;
  Member& member = *found->second;
  if (member.engaged) by_data_.erase(member.data.u64);
  member.wanted = event->events;
  member.data = event->data;
  member.disabled = false;
  if (connection->engaged() && !member.engaged) engage(member);
  if (!member.engaged) return result;
  by_data_[member.data.u64] = &member;
  mark_ready(member);
  if (sleepers_ > 0) ring(*table(), waiter_->watcher(member.bit));
  return result;
}

void EventSet::forget(int fd) {
  const auto found = members_.find(fd);
  if (found == members_.end()) return;
  Member* const member = found->second.get();
  std::erase(ready_, member);
  if (member->engaged) {
    by_data_.erase(member->data.u64);
    give_bit(*member);
    --engaged_;
  }
  {
    const std::scoped_lock registrations(member->connection->registrations_mutex());
    std::erase_if(member->connection->registrations(),
                  [&](const Connection::Registration& one) { return one.set == this && one.fd == fd; });
  }
  members_.erase(found);
}

void EventSet::forget_everywhere(Connection& connection, int fd) {
  for (;;) {
    EventSet* set = nullptr;
    {
      const std::scoped_lock lock(connection.registrations_mutex());
      for (const auto& one : connection.registrations())
        if (one.fd == fd) set = one.set;
    }
    if (set == nullptr) return;
    const std::scoped_lock lock(set->mutex_);
    set->forget(fd);
  }
}

void EventSet::engaged_everywhere(Connection& connection) {
  std::vector<Connection::Registration> registered;
  {
    const std::scoped_lock lock(connection.registrations_mutex());
    registered = connection.registrations();
  }
  for (const auto& one : registered) one.set->engaged(one.fd);
}

void EventSet::engaged(int fd) {
  const std::scoped_lock lock(mutex_);
  const auto found = members_.find(fd);
  if (found == members_.end() || found->second->engaged) return;
  Member& member = *found->second;
  engage(member);
  if (!member.engaged) return;
  by_data_[member.data.u64] = &member;
  mark_ready(member);
}

// More than one member on a bit costs a look at each when one of them is rung.
std::uint32_t EventSet::take_bit(Member& member) {
  auto free = std::ranges::find_if(by_bit_, &std::vector<Member*>::empty);
  if (free == by_bit_.end() && by_bit_.size() == most_members)
    free = by_bit_.begin() + next_shared_bit_++ % most_members;
  else if (free == by_bit_.end())
    free = by_bit_.insert(free, std::vector<Member*>{});
  free->push_back(&member);
  return static_cast<std::uint32_t>(free - by_bit_.begin());
}

void EventSet::give_bit(Member& member) {
  auto& sharers = by_bit_[member.bit];
  std::erase(sharers, &member);
  const bool watched_by_other =
      std::ranges::any_of(sharers, [&](const Member* one) { return one->connection == member.connection; });
  if (waiter_ && !watched_by_other) member.connection->unwatch(waiter_->watcher(member.bit));
}

void EventSet::engage(Member& member) {
  if (!waiter_ && table() != nullptr) {
    waiter_ = Waiter::make(*table());
    epoll_event event{.events = EPOLLIN, .data = {.u64 = bell_data}};
    if (waiter_ && system_calls().epoll_ctl(fd_, EPOLL_CTL_ADD, waiter_->fd(), &event) != 0) waiter_.reset();
  }
  if (!waiter_) {
    member.connection->stay(member.fd, Reason::table);
    return;
  }
  member.bit = take_bit(member);
  if (!member.connection->watch(waiter_->watcher(member.bit)))
    member.connection->stay(member.fd, Reason::table);
  member.engaged = true;
  ++engaged_;
  watch_arrivals(*member.connection);
  // Threads that already sleep here must from now on be woken by the new socket, too.
  if (sleepers_ > 0 || nested_) waiter_->will_sleep();
  if (sleepers_ > 0 || nested_) ring(*table(), waiter_->watcher(member.bit));
}

// One of the sleeping sets is woken and takes the arrivals for all.
void EventSet::watch_arrivals(const Connection& connection) {
  FarArrivals* const them = connection.arrivals();
  if (them == nullptr || them == arrivals_) return;
  epoll_event event{.events = EPOLLIN | EPOLLEXCLUSIVE, .data = {.u64 = arrivals_data}};
  const bool added = system_calls().epoll_ctl(fd_, EPOLL_CTL_ADD, them->fd(), &event) == 0;
  if (added || errno == EEXIST) arrivals_ = them;
  if (arrivals_ == nullptr || nested_) them->always_serve();
}

void EventSet::nested() {
  const std::scoped_lock lock(mutex_);
  nested_ = true;
  if (arrivals_ != nullptr) arrivals_->always_serve();
  if (!waiter_) return;
  waiter_->will_sleep();
  for (std::uint32_t bit = 0; bit < by_bit_.size(); ++bit)
    if (!by_bit_[bit].empty()) ring(*table(), waiter_->watcher(bit));
}

void EventSet::mark_ready(Member& member) {
  if (member.in_ready || member.disabled) return;
  member.in_ready = true;
  ready_.push_back(&member);
}

// Collects what rings have into `into`; returns the number of events.
int EventSet::collect(std::span<epoll_event> into) {
  if (arrivals_ != nullptr) arrivals_->look();
  waiter_->collect([&](std::uint32_t bit) {
    if (bit >= by_bit_.size()) return;
    for (Member* const member : by_bit_[bit]) mark_ready(*member);
  });
  int count = 0;
  std::vector<Member*> looking;
  looking.swap(ready_);
  for (std::size_t i = 0; i < looking.size(); ++i) {
    Member& member = *looking[i];
    if (static_cast<std::size_t>(count) == into.size()) {
      ready_.push_back(&member);
      continue;
    }
    member.in_ready = false;
    if (member.disabled) continue;
    constexpr std::uint32_t reads = EPOLLIN | EPOLLRDNORM;
    const bool reads_now = (member.wanted & reads) != 0 && member.connection->readable(arrivals_ != nullptr);
    const bool writes_now = (member.wanted & EPOLLOUT) != 0 && member.connection->may_send_again();
    if (!reads_now && !writes_now) continue;
    if (reads_now) looking_pays_ = !member.connection->peer_on_this_cpu();
    into[static_cast<std::size_t>(count++)] = {
        .events = (reads_now ? member.wanted & reads : 0u) | (writes_now ? EPOLLOUT : 0u),
        .data = member.data};
    if ((member.wanted & EPOLLONESHOT) != 0) {
      member.disabled = true;
      epoll_event none{.events = EPOLLONESHOT, .data = member.data};
      system_calls().epoll_ctl(fd_, EPOLL_CTL_MOD, member.fd, &none);
    } else if (level(member.wanted)) {
      member.in_ready = true;  // until a look finds nothing
      ready_.push_back(&member);
    }
  }
  return count;
}

// Removes events that the kernel reports but the program must not see.
int EventSet::clean(epoll_event* events, int count) {
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 == bell_data) {
      if (waiter_) waiter_->drain();
      took_wake_ = true;
      continue;
    }
    if (events[i].data.u64 == arrivals_data) {
      if (arrivals_ != nullptr) arrivals_->woken();
      continue;
    }
    epoll_event event = events[i];
    if (engaged_ > 0) {
      if (const auto found = by_data_.find(event.data.u64); found != by_data_.end()) {
        Member& member = *found->second;
        if (member.disabled) continue;  // its ring has reported it meanwhile
        if ((member.wanted & EPOLLONESHOT) != 0) member.disabled = true;
      }
    }
    events[kept++] = event;
  }
  return kept;
}

int EventSet::append(epoll_event* events, int have, int most) {
  return merge(events, have, collect({events + have, static_cast<std::size_t>(most - have)}));
}

// This thread has read the datagram that wakes the set's waiter. Others may sleep in the kernel or on the
// set's descriptor, and a peer that rings now would send no second one.
void EventSet::pass_on_wake() {
  if (!std::exchange(took_wake_, false) || !waiter_ || (sleepers_ == 0 && !nested_)) return;
  waiter_->will_sleep();
  if (waiter_->anything() || !ready_.empty()) ring(*table(), waiter_->watcher(0));
}

int EventSet::kernel_wait(epoll_event* events, int most, int timeout_ms, const sigset_t* mask) {
  return system_calls().epoll_pwait(fd_, events, most, timeout_ms, mask);
}

// With the mutex held: announces that we sleep, then looks once more.
bool EventSet::idle() {
  waiter_->will_sleep();
  return !waiter_->anything() && ready_.empty();
}

int EventSet::wait(epoll_event* events, int most, Timeout timeout, const sigset_t* mask) {
  using Clock = std::chrono::steady_clock;
  if (most <= 0 || events == nullptr) return kernel_wait(events, most, 0, mask);
  const auto begun = Clock::now();
  {
    const std::scoped_lock lock(mutex_);
    if (looking_pays_) begin_looking(spin_, begun);
  }
  for (bool first = true;; first = false) {
    bool looks = false, kernel_too = true;
    int have = 0;
    {
      const std::scoped_lock lock(mutex_);
      if (engaged_ > 0) {
        have = collect({events, static_cast<std::size_t>(most)});
        // The kernel's events get their turn now and then, and whenever the rings have nothing.
        looks = have == 0 && looking_pays_ && (!timeout || timeout->count() > 0);
        const auto now = first ? begun : last_look();
        kernel_too = have < most && (have == 0 ? !looks || now - kernel_look_ >= longest_without_kernel
                                               : ++looks_ % looks_a_kernel_look == 0);
        if (kernel_too) kernel_look_ = now;
      }
    }
    if (have > 0) {
      if (kernel_too) {
        const int more = kernel_wait(events + have, most - have, 0, nullptr);
        const std::scoped_lock lock(mutex_);
        have = merge(events, have, more > 0 ? clean(events + have, more) : 0);
        pass_on_wake();
      }
      return have;
    }
    if (looks && mask == nullptr && look_again(spin_)) {
      if (!kernel_too) continue;
      const int found = kernel_wait(events, most, 0, nullptr);
      const std::scoped_lock lock(mutex_);
      if (const int kept = found > 0 ? clean(events, found) : 0; kept > 0) {
        looking_pays_ = false;
        const int all = append(events, kept, most);
        pass_on_wake();
        return all;
      }
      continue;
    }
    const auto limit = sleep_limit(timeout, begun, true);
    bool sleeps = limit.has_value();
    {
      const std::scoped_lock lock(mutex_);
      ++sleepers_;
      if (sleeps && arrivals_ != nullptr) arrivals_->will_sleep();
      if (engaged_ > 0 && !idle()) sleeps = false;
    }
    const int wait_ms = !sleeps ? 0
                        : !timeout
                            ? -1
                            : static_cast<int>(std::min<std::int64_t>(
                                  INT_MAX, limit->tv_sec * 1000 + (limit->tv_nsec + 999'999) / 1'000'000));
    const int found = kernel_wait(events, most, wait_ms, mask);
    const int error = errno;
    int kept = 0;
    {
      const std::scoped_lock lock(mutex_);
      --sleepers_;
      if (arrivals_ != nullptr) arrivals_->awake();
      const bool others = sleepers_ > 0 || nested_;
      if (engaged_ > 0 && !others) waiter_->awake();
      if (found > 0) kept = clean(events, found);
      if (engaged_ > 0) {
        if (kept > 0) {
          looking_pays_ = false;
          kept = append(events, kept, most);
        }
        took_wake_ = true;  // a peer that rings wakes only one of us
        pass_on_wake();
      }
      if (looking_pays_) begin_looking(spin_, Clock::now());
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

void EventSet::close() {
  {
    const std::scoped_lock lock(mutex_);
    while (!members_.empty()) forget(members_.begin()->first);
    waiter_.reset();
  }
  // Another thread may still be in wait(), so the object stays; it is small.
}

void EventSet::hand_back() {
  close();
  const std::scoped_lock lock(mutex_);
  if (FarArrivals* const them = std::exchange(arrivals_, nullptr))
    system_calls().epoll_ctl(fd_, EPOLL_CTL_DEL, them->fd(), nullptr);
}

void EventSet::become_childs() {
  new (&mutex_) SectionMutex;
  (void)waiter_.release();
  arrivals_ = nullptr;
  for (auto& [fd, member] : members_) member->engaged = member->in_ready = false;
  by_data_.clear();
  by_bit_.clear();
  ready_.clear();
  engaged_ = sleepers_ = 0;
}

}  // namespace weir::sockets

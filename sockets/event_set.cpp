#include "sockets/event_set.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "sockets/calls/system_calls.hpp"
#include "sockets/connection.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/far_arrivals.hpp"
#include "sockets/runtime.hpp"

namespace weir::sockets {
namespace {

// Sentinels.
constexpr std::uint32_t every_change = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET;
// What can be wanted of a TCP socket and decided here. Not EPOLLEXCLUSIVE, which is about other sets.
constexpr std::uint32_t decided_here =
    every_change | EPOLLRDNORM | EPOLLWRNORM | EPOLLHUP | EPOLLERR | EPOLLONESHOT;

}  // namespace

EventSet::Member* EventSet::member(const Key& key) {
  const auto found = members_.find(key);
  return found != members_.end() ? found->second.get() : nullptr;
}

int EventSet::control(int operation, int fd, epoll_event* event) {
  const Uncancelled call;
  Connection* const connection = Descriptors::find(fd);
  if (EventSet* inner = Descriptors::find_set(fd); inner != nullptr && operation == EPOLL_CTL_ADD)
    inner->nested();
  if (connection == nullptr) return system_calls().epoll_ctl(fd_, operation, fd, event);
  const Key key{connection, fd};
  {
    const std::scoped_lock lock(mutex_);
    if (Member* const known = member(key); known != nullptr && known->sentinel != 0)
      if (const auto result = control_by_sentinel(operation, *known, event)) return *result;
  }
  if (operation == EPOLL_CTL_ADD && connection->removed_members().load() > 0)
    forget_removed_elsewhere(*connection);
  const std::scoped_lock lock(mutex_);
  if (operation == EPOLL_CTL_DEL) {
    forget(key);
    return system_calls().epoll_ctl(fd_, operation, fd, event);
  }
  const int result = system_calls().epoll_ctl(fd_, operation, fd, event);
  if (result != 0 || event == nullptr) return result;
  if (operation == EPOLL_CTL_ADD) {
    forget(key);  // left by a descriptor that was closed past us
    members_[key] = std::make_unique<Member>(fd, connection);
    const std::scoped_lock registrations(connection->registrations_mutex());
    connection->registrations().push_back({this, fd});
  }
  Member* const changed = member(key);
  if (changed == nullptr) return result;
  Member& it = *changed;
  lose_by_data(it);
  it.wanted = event->events;
  it.data = event->data;
  it.disabled = false;
  it.changed = true;
  find_by_data(it);
  if (connection->engaged() && !it.engaged) engage(it);
  if (!it.engaged) return result;
  if (it.sentinel == 0 && may_have_sentinel(it, it.wanted)) begin_sentinel(it);
  mark_ready(it);
  if (sleepers_ > 0) ring(*table(), waiter_->watcher(no_members_bit));
  return result;
}

void EventSet::forget(const Key& key) {
  const auto found = members_.find(key);
  if (found == members_.end()) return;
  Member* const member = found->second.get();
  ready_.remove(*member);
  lose_by_data(*member);
  by_sentinel_.erase(member->sentinel);
  if (member->removed) member->connection->removed_members().fetch_sub(1);
  if (member->engaged) {
    give_bit(*member);
    --engaged_;
  }
  {
    const std::scoped_lock registrations(member->connection->registrations_mutex());
    std::erase_if(member->connection->registrations(),
                  [&](const Connection::Registration& one) { return one.set == this && one.fd == key.fd; });
  }
  members_.erase(found);
}

void EventSet::forget_everywhere(Connection& connection) {
  for (;;) {
    Connection::Registration one{};
    {
      const std::scoped_lock lock(connection.registrations_mutex());
      if (connection.registrations().empty()) return;
      one = connection.registrations().back();
    }
    const std::scoped_lock lock(one.set->mutex_);
    one.set->forget({&connection, one.fd});
  }
}

void EventSet::engaged_everywhere(Connection& connection) {
  std::vector<Connection::Registration> registered;
  {
    const std::scoped_lock lock(connection.registrations_mutex());
    registered = connection.registrations();
  }
  for (const auto& one : registered) one.set->engaged({&connection, one.fd});
}

void EventSet::engaged(const Key& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = members_.find(key);
  if (found == members_.end() || found->second->engaged) return;
  Member& member = *found->second;
  engage(member);
  if (!member.engaged) return;
  find_by_data(member);
  if (may_have_sentinel(member, member.wanted)) begin_sentinel(member);
  mark_ready(member);
}

// More than one member on a bit costs a look at each when one of them is rung.
std::uint32_t EventSet::take_bit(Member& member) {
  auto free = std::ranges::find_if(by_bit_, &std::vector<Member*>::empty);
  if (free == by_bit_.end() && by_bit_.size() == no_members_bit)
    free = by_bit_.begin() + next_shared_bit_++ % no_members_bit;
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
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = bell_data}};
    if (waiter_ && system_calls().epoll_ctl(fd_, EPOLL_CTL_ADD, waiter_->fd(), &event) != 0) waiter_.reset();
  }
  if (!waiter_) {
    member.connection->stay(member.connection->descriptor(), Reason::table);
    return;
  }
  member.bit = take_bit(member);
  if (!member.connection->watch(waiter_->watcher(member.bit)))
    member.connection->stay(member.connection->descriptor(), Reason::table);
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
  while (!by_sentinel_.empty()) end_sentinel(*by_sentinel_.begin()->second);
  if (arrivals_ != nullptr) arrivals_->always_serve();
  if (!waiter_) return;
  waiter_->will_sleep();
  for (std::uint32_t bit = 0; bit < by_bit_.size(); ++bit)
    if (!by_bit_[bit].empty()) ring(*table(), waiter_->watcher(bit));
}

void EventSet::mark_ready(Member& member) {
  if (!member.disabled && !member.removed) ready_.push_back(member);
}

void EventSet::close() {
  {
    const std::scoped_lock lock(mutex_);
    while (!members_.empty()) forget(members_.begin()->first);
    waiter_.reset();
  }
  // Another thread may still be in wait(), so the object stays; it is small.
}

bool EventSet::closed(int fd, const std::function<int()>& other) {
  const std::scoped_lock lock(mutex_);
  if (--copies_ == 0) return true;
  if (fd == fd_) fd_ = other();
  return false;
}

void EventSet::hand_back() {
  interest_to_kernel();
  close();
  const std::scoped_lock lock(mutex_);
  if (FarArrivals* const them = std::exchange(arrivals_, nullptr))
    system_calls().epoll_ctl(fd_, EPOLL_CTL_DEL, them->fd(), nullptr);
}

void EventSet::become_childs() {
  new (&mutex_) SectionMutex;
  (void)waiter_.release();
  arrivals_ = nullptr;
  while (!ready_.empty()) ready_.pop_front();
  for (auto& [key, member] : members_) {
    member->engaged = false;
    member->sentinel = 0;  // interest_to_kernel() before the fork
  }
  by_data_.clear();
  by_sentinel_.clear();
  by_bit_.clear();
  engaged_ = sleepers_ = 0;
}

// A process that shares the connection since a fork may share the set as well.
bool EventSet::may_have_sentinel(const Member& member, std::uint32_t wanted) const {
  return member.engaged && !nested_ && (wanted & ~decided_here) == 0 && last_sentinel_ + 1 < max_sentinel &&
         member.connection->stays() == Reason::none && member.connection->record().holders.load() == 1;
}

// The kernel's first report says what is there now.
void EventSet::begin_sentinel(Member& member) {
  const std::uint32_t number = ++last_sentinel_;
  epoll_event event{.events = every_change, .data = {.u64 = sentinel_data | number}};
  if (system_calls().epoll_ctl(fd_, EPOLL_CTL_MOD, member.fd, &event) != 0) return;
  lose_by_data(member);
  member.sentinel = number;
  member.fresh = 0;
  member.changed = true;
  by_sentinel_[number] = &member;
  turn_.new_sentinel = true;
}

// A removed member is gone after this.
void EventSet::end_sentinel(Member& member) {
  by_sentinel_.erase(member.sentinel);
  member.sentinel = 0;
  epoll_event event{.events = member.disabled ? std::uint32_t{EPOLLONESHOT} : member.wanted,
                    .data = member.data};
  system_calls().epoll_ctl(fd_, member.removed ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, member.fd, &event);
  if (member.removed)
    forget({member.connection, member.fd});
  else
    find_by_data(member);
}

// False: it is the program's.
bool EventSet::take_report(const epoll_event& event) {
  if ((event.data.u64 & ~std::uint64_t{0xffff'ffff}) != sentinel_data) return false;
  const auto found = by_sentinel_.find(static_cast<std::uint32_t>(event.data.u64));
  if (found == by_sentinel_.end()) return true;  // it ended meanwhile
  Member& member = *found->second;
  member.connection->kernel_events().reported(event.events);
  if (member.removed) return true;
  member.fresh |= event.events;
  mark_ready(member);
  if ((member.wanted & EPOLLET) == 0) took_wake_ = true;  // the kernel would wake further threads for a level
  return true;
}

// nullopt: the kernel must do it, and no longer has the sentinel.
std::optional<int> EventSet::control_by_sentinel(int operation, Member& member, const epoll_event* event) {
  const auto failed = [](int error) {
    errno = error;
    return -1;
  };
  const bool adds = operation == EPOLL_CTL_ADD;
  if (!adds && operation != EPOLL_CTL_MOD && operation != EPOLL_CTL_DEL) return failed(EINVAL);
  if (event == nullptr && operation != EPOLL_CTL_DEL) return failed(EFAULT);
  if (adds != member.removed) return failed(adds ? EEXIST : ENOENT);
  if (operation == EPOLL_CTL_DEL) {
    ready_.remove(member);
    member.removed = true;
    member.connection->removed_members().fetch_add(1);
    return 0;
  }
  if (!may_have_sentinel(member, event->events)) {
    end_sentinel(member);
    return std::nullopt;
  }
  if (adds) member.connection->removed_members().fetch_sub(1);
  member.removed = member.disabled = false;
  member.changed = true;
  member.wanted = event->events;
  member.data = event->data;
  mark_ready(member);
  if (sleepers_ > 0) ring(*table(), waiter_->watcher(no_members_bit));
  return 0;
}

void EventSet::interest_to_kernel() {
  const std::scoped_lock lock(mutex_);
  while (!by_sentinel_.empty()) end_sentinel(*by_sentinel_.begin()->second);
}

void EventSet::interest_to_kernel_everywhere(Connection& connection, std::optional<int> fd) {
  std::vector<Connection::Registration> registered;
  {
    const std::scoped_lock lock(connection.registrations_mutex());
    registered = connection.registrations();
  }
  for (const auto& one : registered) {
    if (fd && one.fd != *fd) continue;
    const std::scoped_lock lock(one.set->mutex_);
    if (Member* const it = one.set->member({&connection, one.fd}); it != nullptr && it->sentinel != 0)
      one.set->end_sentinel(*it);
  }
}

void EventSet::forget_if_removed(const Key& key) {
  const std::scoped_lock lock(mutex_);
  if (Member* const it = member(key); it != nullptr && it->removed) end_sentinel(*it);
}

// A connection has room for few sets to be woken, and one that has removed it needs none.
void EventSet::forget_removed_elsewhere(Connection& connection) {
  std::vector<Connection::Registration> registered;
  {
    const std::scoped_lock lock(connection.registrations_mutex());
    registered = connection.registrations();
  }
  for (const auto& one : registered)
    if (one.set != this) one.set->forget_if_removed({&connection, one.fd});
}

void EventSet::find_by_data(Member& member) {
  if (member.sentinel == 0 && (member.engaged || (member.wanted & EPOLLONESHOT) != 0))
    by_data_[member.data.u64] = &member;
}

void EventSet::lose_by_data(const Member& member) {
  const auto found = by_data_.find(member.data.u64);
  if (found != by_data_.end() && found->second == &member) by_data_.erase(found);
}

}  // namespace weir::sockets

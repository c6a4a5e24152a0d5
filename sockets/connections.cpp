#include "sockets/connections.hpp"

#include <fcntl.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "sockets/calls/system_calls.hpp"
#include "sockets/connection_objects.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/device.hpp"
#include "sockets/event_set.hpp"
#include "sockets/lent_waiter.hpp"
#include "sockets/report.hpp"
#include "sockets/runtime.hpp"
#include "sockets/service.hpp"
#include "sockets/settings.hpp"

namespace weir::sockets {
namespace {

void before_fork() {
  ConnectionObjects::before_fork();
  // The child has the same sets, but not what we know of them. No member gets a sentinel while it lives.
  for (int fd = -1; (fd = Descriptors::next_known(static_cast<unsigned>(fd + 1), ~0u >> 1)) >= 0;)
    if (EventSet* set = Descriptors::find_set(fd)) set->interest_to_kernel();
}

void in_child() {
  runtime_forgets_parent();
  service_forgets_parent();
  ConnectionObjects::after_fork_in_child();
  for (int fd = -1; (fd = Descriptors::next_known(static_cast<unsigned>(fd + 1), ~0u >> 1)) >= 0;)
    if (EventSet* set = Descriptors::find_set(fd)) set->become_childs();
}

void watch_forks() {
  static const bool once =
      ::pthread_atfork(before_fork, ConnectionObjects::after_fork_in_parent, in_child) == 0;
  (void)once;
}

// The NIC registered its own end when the first connection to another host was made; what is registered later
// runs before it.
void part_before_device_ends() {
  static const bool once = std::atexit([] { Connections::part_all(false); }) == 0;
  (void)once;
}

constinit std::atomic<bool> aside{false};

bool tracks(int fd) { return Descriptors::has_place_for(fd) && !settings().off && !aside.load(); }

int descriptor_of(const Connection& it) {
  int fd = -1;
  do fd = Descriptors::next_known(static_cast<unsigned>(fd + 1), ~0u >> 1);
  while (fd >= 0 && Descriptors::find(fd) != &it);
  return fd;
}

}  // namespace

void Connections::born(int fd, bool accepted) {
  if (!tracks(fd)) return;
  const Uncancelled call;
  forget(fd);
  watch_forks();
  const std::scoped_lock lock(ConnectionObjects::mutex());
  if (Connection* const it = ConnectionObjects::take(accepted)) Descriptors::put(fd, *it);
}

void Connections::copied(int fd, int copy) {
  if (copy < 0 || copy == fd || !Descriptors::has_place_for(copy)) return;
  const Uncancelled call;
  forget(copy);
  if (EventSet* const set = Descriptors::find_set(fd)) {
    set->copied();
    Descriptors::put(copy, *set);
    return;
  }
  const std::scoped_lock lock(ConnectionObjects::mutex());
  Connection* const it = Descriptors::find(fd);
  if (it == nullptr) return;
  ++it->copies_;
  Descriptors::put(copy, *it);
}

void Connections::closing(int fd) { end_of(fd, true); }

// `open`: the descriptor still belongs to the connection.
void Connections::end_of(int fd, bool open) {
  if (!Descriptors::is_known(fd)) return;
  const Uncancelled call;
  if (EventSet* set = Descriptors::find_set(fd)) {
    Descriptors::clear(fd);
    const auto other = [&] {
      int copy = -1;
      do copy = Descriptors::next_known(static_cast<unsigned>(copy + 1), ~0u >> 1);
      while (copy >= 0 && Descriptors::find_set(copy) != set);
      return copy;
    };
    if (set->closed(fd, other)) set->close();
    return;
  }
  Connection* it = nullptr;
  bool last = false;
  {
    const std::scoped_lock lock(ConnectionObjects::mutex());
    it = Descriptors::find(fd);
    if (it == nullptr) return;
    Descriptors::clear(fd);
    last = --it->copies_ == 0;
    if (!last && it->descriptor() == fd) it->fd_.store(descriptor_of(*it));
  }
  if (!last) {
    if (open) EventSet::interest_to_kernel_everywhere(*it, fd);  // no call can change it afterwards
    return;
  }
  EventSet::forget_everywhere(*it);
  it->close(fd, open);
  if (settings().report) count_ended(*it);
  if (it->foreign_) (void)it->link_.release();  // the link and the place in the table are the parent's
  if (it->foreign_ || it->life() == Connection::Life::observed) {
    ConnectionObjects::recycle(*it);
  } else {
    service_ends(*it);
  }
}

// Closed by a call that we did not see. What was agreed with its peer is over.
void Connections::forget(int fd) { end_of(fd, false); }

void Connections::disconnected(int fd) {
  const Uncancelled call;
  const int before = errno;
  bool sees_all = false;
  Connection* const it = Descriptors::find(fd);
  if (it == nullptr) return;
  {
    const std::scoped_lock objects(ConnectionObjects::mutex());
    const std::scoped_lock registrations(it->registrations_mutex());
    sees_all = it->copies_ == 1 && it->registrations().empty();
  }
  EventSet::interest_to_kernel_everywhere(*it);
  for (int one = -1; (one = Descriptors::next_known(static_cast<unsigned>(one + 1), ~0u >> 1)) >= 0;)
    if (Descriptors::find(one) == it) forget(one);
  // In an epoll set it stays as a descriptor that is the kernel's alone, and so do its copies.
  if (sees_all) born(fd);
  errno = before;
}

void Connections::set_born(int fd) {
  if (!tracks(fd)) return;
  forget(fd);
  Descriptors::put(fd, *new EventSet(fd));
}

void Connections::passed_on(int fd) {
  if (EventSet* const set = Descriptors::find_set(fd)) set->nested();
  if (const Use use(fd); use) use->stay(fd, Reason::passed_on);
}

void Connections::sets_are_watched() {
  for (int fd = -1; (fd = Descriptors::next_known(static_cast<unsigned>(fd + 1), ~0u >> 1)) >= 0;)
    if (EventSet* const set = Descriptors::find_set(fd)) set->nested();
}

void Connections::consider(int fd, Connection& it) {
  const Connection::Next next = it.consider(fd);
  if (it.far_ && it.engaged()) part_before_device_ends();
  if (next == Connection::Next::nothing) return;
  const Uncancelled call;
  const int before = errno;
  switch (next) {
    case Connection::Next::nothing:
      break;
    case Connection::Next::seek_peer:
      if (!service_agrees(it)) it.stay(fd, Reason::table);
      break;
    case Connection::Next::seek_for_too_long:
      service_reconsiders(it);
      break;
    case Connection::Next::update_sets:
      EventSet::engaged_everywhere(it);
      break;
  }
  errno = before;
}

void Connections::leave_holders(bool closed_by_exec_alone) {
  ConnectionObjects::each([&](int fd, Connection& it) {
    if (closed_by_exec_alone && (system_calls().fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) return;
    it.record().holders.fetch_sub(1);
  });
}

void Connections::join_holders() {
  ConnectionObjects::each([](int fd, Connection& it) {
    if ((system_calls().fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) it.record().holders.fetch_add(1);
  });
}

void Connections::leave_before_fork() {
  if (settings().peers.empty()) return;
  const Uncancelled call;
  ConnectionObjects::each_once([](int fd, Connection& it) {
    if (it.engaged() && it.far_ && !it.foreign_ && it.stays() == Reason::none) it.leave_for_child(fd);
  });
}

void Connections::part_all(bool by_exec) {
  static std::atomic<bool> parted = false;
  if (settings().peers.empty() || (!by_exec && parted.exchange(true))) return;
  const Uncancelled call;
  ConnectionObjects::each_once([&](int fd, Connection& it) {
    if (by_exec && (system_calls().fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) return;
    if (it.record().holders.load() == 1) it.part(fd, true);
  });
}

void Connections::step_aside() {
  if (aside.exchange(true)) return;
  const Uncancelled call;
  ConnectionObjects::all_stay(Reason::filtered);
  for (int fd = -1; (fd = Descriptors::next_known(static_cast<unsigned>(fd + 1), ~0u >> 1)) >= 0;) {
    if (EventSet* set = Descriptors::find_set(fd); set != nullptr) {
      Descriptors::clear(fd);
      set->hand_back();
    } else {
      forget(fd);
    }
  }
  drop_idle_waiters();
  device_ends_silently();
}

bool Connections::stepped_aside() { return aside.load(); }

}  // namespace weir::sockets

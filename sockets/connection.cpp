#include "sockets/connection.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "sockets/calls/interruption.hpp"
#include "sockets/calls/system_calls.hpp"
#include "sockets/far_arrivals.hpp"
#include "sockets/kernel_counts.hpp"
#include "sockets/lent_waiter.hpp"
#include "sockets/runtime.hpp"
#include "sockets/settings.hpp"
#include "sockets/spin.hpp"

namespace weir::sockets {
namespace {

// The waiter that this end wakes while the thread is in wait(), which it may leave by being cancelled.
class Woken {
 public:
  Woken(Connection& it, Waiter* waiter, FarArrivals* from_afar)
      : it_(it),
        waiter_(waiter != nullptr && it.watch(waiter->watcher(0)) ? waiter : nullptr),
        from_afar_(from_afar) {}
  ~Woken() {
    if (from_afar_ != nullptr) from_afar_->awake();
    if (waiter_ == nullptr) return;
    waiter_->awake();
    it_.unwatch(waiter_->watcher(0));
  }
  Woken(const Woken&) = delete;
  Woken& operator=(const Woken&) = delete;
  Waiter* waiter() const { return waiter_; }  // null: this end wakes nobody, look now and then

 private:
  Connection& it_;
  Waiter* const waiter_;
  FarArrivals* const from_afar_;
};

constexpr std::uint64_t least_bytes =
    32;  // that went by before a peer is looked for: 16 of one direction are a proof who it is

bool kernel_has_something(int fd) {
  pollfd one{fd, POLLIN | POLLRDHUP, 0};
  const timespec at_once{};
  return system_calls().ppoll(&one, 1, &at_once, nullptr) > 0;
}

}  // namespace

Outgoing Connection::outgoing() {
  return {record_->end, place_.mine().sender, place_.peer().receiver, peer_ring_bytes_};
}
Incoming Connection::incoming() {
  return {record_->end, place_.mine().receiver, place_.peer().sender, settings().ring_bytes};
}

void Connection::note_received(std::span<const iovec> into, std::size_t bytes) {
  const auto at = record_->end.received.load(std::memory_order_relaxed);
  if (at < FirstBytes::most) received_first_.note(at, into, bytes);
  record_->end.received.fetch_add(bytes, std::memory_order_release);  // after the bytes, for conversation()
  record_->end.received_tcp.fetch_add(bytes, std::memory_order_relaxed);
}

void Connection::note_sent(std::span<const iovec> from, std::size_t bytes) {
  const auto at = record_->end.sent.load(std::memory_order_relaxed);
  if (at < FirstBytes::most) sent_first_.note(at, from, bytes);
  record_->end.sent.fetch_add(bytes, std::memory_order_release);  // as in note_received()
  record_->end.sent_tcp.fetch_add(bytes, std::memory_order_relaxed);
}

Connection::Next Connection::consider(int fd) {
  const auto calls = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  const Life now = life();
  if (now == Life::ready) {
    // The proof fails while bytes come in, so a busy stream is not checked at every call.
    const bool engages = (calls < 64 || calls % 16 == 0) && engage(fd);
    return engages ? Next::update_sets : Next::nothing;
  }
  const auto& end = record_->end;
  if (now == Life::agreeing) return calls % 4096 == 0 ? Next::seek_for_too_long : Next::nothing;
  if (now != Life::observed || calls < settings().after_calls || stays() != Reason::none ||
      end.sent.load(std::memory_order_relaxed) + end.received.load(std::memory_order_relaxed) < least_bytes ||
      record_->holders.load() != 1)
    return Next::nothing;
  Next next = Next::nothing;
  const int before = errno;
  const auto ends = ends_of(fd);
  if (!ends || (ends->far && !settings().peers.have(ends->peer().address))) {
    stay(fd, Reason::other_host);
  } else if (!settings().rules.allow(program_invocation_short_name, ends->key.low.port,
                                     ends->key.high.port)) {
    stay(fd, Reason::rules);
  } else {
    Life expected = Life::observed;
    if (life_.compare_exchange_strong(expected, Life::agreeing)) {
      ends_ = *ends;
      far_ = ends->far;
      fd_.store(fd);
      since_ = std::chrono::steady_clock::now();
      next = Next::seek_peer;
    }
  }
  errno = before;
  return next;
}

bool Connection::engage(int fd) {
  const int before = errno;
  {
    Gate sends(record_->send_gate), receives(record_->receive_gate);
    if (!sends.try_exclusive() || !receives.try_exclusive() || life() != Life::ready ||
        stays() != Reason::none || record_->holders.load() != 1)
      return false;
    const auto counts = kernel_counts(fd);
    errno = before;
    if (!counts || !counts->established) return false;
    if (!counts->agree_on_written(record_->end.sent_tcp.load(), accepted_) ||
        counts->read != record_->end.received_tcp.load()) {
      record_->stays.store(static_cast<std::uint32_t>(Reason::unseen_calls));
      place_.mine().why_not.store(static_cast<std::uint32_t>(Reason::unseen_calls));
      trace("descriptor %d %s", fd, text(Reason::unseen_calls));
      return false;
    }
    life_.store(Life::engaged, std::memory_order_release);
    place_.mine().receives.store(1);
    link_->tell();
  }
  trace("descriptor %d may change to RDMA", fd);
  errno = before;
  return true;
}

bool Connection::gets_by_ring() const {
  return (place_.peer().sender.changes.load(std::memory_order_relaxed) & 1) != 0;
}

bool Connection::sends_by_ring() const {
  return (place_.mine().sender.changes.load(std::memory_order_relaxed) & 1) != 0;
}

std::uint64_t Connection::unread() {
  Gate gate(record_->receive_gate);
  if (!gate.exclusive()) return 0;
  const Source source = incoming().next();
  return source.kind == Source::Kind::ring ? source.bytes : held_.size();
}

std::uint64_t Connection::unsent() const {
  if (far_ && (off_link() || link_->all_arrived())) return 0;
  const auto produced = place_.mine().sender.produced.load(),
             consumed = place_.peer().receiver.consumed.load();
  return sends_by_ring() && produced > consumed
             ? std::min<std::uint64_t>(produced - consumed, peer_ring_bytes_)
             : 0;
}

void Connection::notify_peer() {
  if (far_)
    link_->tell();
  else
    ring_all(*table(), place_.peer());
}

// Sleeps until the peer has answered.
bool Connection::settle(std::chrono::microseconds longest, Known known) {
  const auto answered = [&] { return (link_.get()->*known)(); };
  if (answered()) return true;
  constexpr std::chrono::microseconds nap{500};  // nothing signals room in a full send queue
  const auto until = std::chrono::steady_clock::now() + longest;
  FarArrivals& from_afar = *arrivals();
  do {
    link_->look();
    link_->tell();  // sends what found no room in the send queue
    from_afar.will_sleep();
    if (!answered()) {
      pollfd one{from_afar.fd(), POLLIN, 0};
      const timespec limit{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(std::min(nap, longest)).count()};
      if (system_calls().ppoll(&one, 1, &limit, nullptr) > 0) from_afar.woken();
    }
    from_afar.awake();
  } while (!answered() && !link_->lost() && std::chrono::steady_clock::now() < until);
  return answered();
}

bool Connection::may_send_again() {
  if (!send_blocked_.load() || return_.state.load() == Return::asked || (!link_->placed() && !link_->lost()))
    return false;
  return send_blocked_.exchange(false);
}

void Connection::leave_for_child(int fd) {
  constexpr std::chrono::milliseconds longest{1000};
  const int before = errno;
  {
    Gate gate(record_->send_gate);
    if (!gate.exclusive()) return reset(fd);
    keep_to_tcp(fd, Reason::shared_by_processes);
  }
  const auto until = std::chrono::steady_clock::now() + longest;
  while (!link_->lost() && (!link_->settled() || gets_by_ring()) &&
         std::chrono::steady_clock::now() < until) {
    settle(std::chrono::milliseconds(1), &Link::settled);
    if (gets_by_ring()) ::usleep(20);
  }
  // If the peer did not answer, the child cannot use this connection (keep_words()).
  errno = before;
}

void Connection::end_sending(int fd) {
  const Uncancelled call;
  if (!engaged()) return;
  if (foreign_) return leave(fd, Reason::shared_by_processes);
  if (far_) return part(fd, false);
  if (place_.mine().done.load() != 0) return;
  const int before = errno;
  {
    Gate gate(record_->send_gate);
    if (!gate.exclusive()) return reset(fd);
    outgoing().leave_ring();
    place_.mine().done.store(1);
  }
  errno = before;
}

void Connection::part(int fd, bool all) {
  if (!engaged() || off_link() || !far_) return;
  constexpr std::chrono::milliseconds longest{1000};
  const int before = errno;
  bool by_ring = false;
  {
    Gate gate(record_->send_gate);
    by_ring = !gate.exclusive();
    by_ring |= link_->lost() && sends_by_ring();  // unacknowledged bytes may not have arrived
    outgoing().leave_ring();
    place_.mine().done.store(1);
  }
  if (all) place_.mine().receiver.wants_tcp.store(static_cast<std::uint64_t>(Want::tcp));
  link_->tell();
  if (by_ring || !settle(longest, &Link::settled)) {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    if (all)
      system_calls().setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    else
      reset(fd);
  }
  errno = before;
}

bool Connection::readable(bool looked) {
  Gate gate(record_->receive_gate);
  if (!gate.exclusive()) return true;
  const bool by_messages = far_ && !off_link();
  if (by_messages && !looked) link_->look();
  const auto seen = record_->end.changes_seen.load(std::memory_order_relaxed);
  const Source source = incoming().next();
  if (by_messages && seen != record_->end.changes_seen.load(std::memory_order_relaxed)) link_->tell();
  return (source.kind == Source::Kind::ring ? source.bytes > 0 : !held_.empty()) || lost_ ||
         pending_error_ != 0 || source.kind == Source::Kind::broken;
}

bool Connection::wait(int fd, bool sends, int& error, const Uncancelled& call) {
  error = 0;
  const LentWaiter lent(table());
  const auto timeout = timeout_of(fd, sends);
  const auto begun = std::chrono::steady_clock::now();
  PollBudget& budget = thread_budget();
  const bool by_ring = !sends && gets_by_ring() && !peer_on_this_cpu();
  if (by_ring) begin_looking(budget, begun);
  for (int looks = 1; by_ring && look_again(budget); ++looks) {
    if (readable()) return true;
    if (looks % 16 == 0 && kernel_has_something(fd)) return true;
  }
  FarArrivals* const from_afar = sends ? nullptr : arrivals();
  const Woken woken(*this, sends ? nullptr : lent.get(), from_afar);
  Waiter* const waiter = woken.waiter();
  std::array<pollfd, 3> fds{{{fd, static_cast<short>(sends ? POLLOUT : POLLIN | POLLRDHUP), 0},
                             {waiter != nullptr ? waiter->fd() : -1, POLLIN, 0},
                             {from_afar != nullptr ? from_afar->fd() : -1, POLLIN, 0}}};
  bool done = false;
  while (!done && error == 0) {
    if (waiter != nullptr) {
      waiter->collect([](std::uint32_t) {});
      waiter->will_sleep();
    }
    if (from_afar != nullptr) from_afar->will_sleep();
    if (!sends && readable(from_afar != nullptr)) break;
    const auto limit = sleep_limit(timeout, begun, waiter != nullptr || sends);
    if (!limit) {
      error = EAGAIN;
      break;
    }
    int found = 0;
    {
      const Cancellable sleeping(call);
      found = system_calls().ppoll(fds.data(), fds.size(), &*limit, nullptr);
    }
    if (found < 0) {
      if (errno != EINTR || interrupted_for_good()) error = errno;
      continue;
    }
    if (waiter != nullptr) waiter->awake();
    if (fds[1].revents != 0) waiter->drain();
    if (fds[2].revents != 0) from_afar->woken();  // maybe for another connection
    done = fds[0].revents != 0 || fds[1].revents != 0;
  }
  return error == 0;
}

void Connection::stay(int fd, Reason why) {
  const Uncancelled call;
  if (engaged()) return leave(fd, why);
  std::uint32_t none = 0;
  if (record_->stays.compare_exchange_strong(none, static_cast<std::uint32_t>(why))) {
    trace("descriptor %d %s: it stays on TCP", fd, text(why));
  }
}

void Connection::reset(int fd, Reason why) {
  // An error is better than a missing byte: the kernel sends RST.
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  const int before = errno;
  system_calls().connect(fd, &nowhere, sizeof nowhere);
  errno = before;
  trace("descriptor %d is reset: it %s", fd, text(why));
}

void Connection::keep_to_tcp(int fd, Reason why) {
  std::uint32_t none = 0;
  record_->stays.compare_exchange_strong(none, static_cast<std::uint32_t>(why));
  Side& mine = place_.mine();
  mine.why_not.store(static_cast<std::uint32_t>(why));
  outgoing().leave_ring();
  mine.done.store(1);
  mine.receiver.wants_tcp.store(static_cast<std::uint64_t>(Want::tcp));
  if (far_ && !foreign_) link_->tell();
  trace("descriptor %d %s: back to TCP", fd, text(why));
}

void Connection::leave(int fd, Reason why) {
  constexpr std::chrono::milliseconds longest{1000};
  const int before = errno;
  std::uint32_t none = 0;
  record_->stays.compare_exchange_strong(none, static_cast<std::uint32_t>(why));
  if (far_ && off_link()) return;  // it is on TCP already: leave_for_child(), take_return()
  Side& mine = place_.mine();
  Side& peer = place_.peer();
  {
    Gate gate(record_->send_gate);
    if (!gate.exclusive()) return reset(fd);
    if (!leaves_process(why)) {
      keep_to_tcp(fd, why);
      errno = before;
      return;
    }
    mine.why_not.store(static_cast<std::uint32_t>(why));
    outgoing().leave_ring();
    mine.done.store(1);
  }
  Gate gate(record_->receive_gate);
  if (!gate.exclusive()) return reset(fd);
  Incoming in = incoming();
  in.next();  // tells the peer how far we have read
  mine.receiver.wants_tcp.store(static_cast<std::uint64_t>(Want::unread_back));
  link_->tell();
  const auto begun = std::chrono::steady_clock::now();
  for (;;) {
    const Source source = in.next();
    const bool empty = source.kind == Source::Kind::ring
                           ? source.bytes == 0
                           : source.bytes == Incoming::no_limit ||
                                 peer.sender.tcp_from.load() <= peer.sender.ring_from.load();
    const bool over = static_cast<Stage>(peer.stage.load()) == Stage::gone || !table()->alive(peer);
    link_->look();
    link_->tell();
    const bool known = link_->settled();
    if (source.kind != Source::Kind::broken && empty && known &&
        (over || (peer.sender.changes.load() & 1) == 0))
      break;
    if (source.kind == Source::Kind::broken || over || std::chrono::steady_clock::now() - begun > longest) {
      lost_ = true;  // what is in the ring cannot follow the descriptor
      break;
    }
    if (!far_) ring(*table(), peer.service.load());
    ::usleep(50);
  }
  if (lost_ || !held_.empty()) reset(fd);
  trace("descriptor %d %s: back to TCP", fd, text(why));
  errno = before;
}

bool Connection::leaves_process(Reason why) const {
  return why == Reason::exec || why == Reason::passed_on || why == Reason::stdio || why == Reason::splice ||
         why == Reason::io_uring || why == Reason::filtered ||
         (why == Reason::shared_by_processes && !foreign_);
}

void Connection::close(int fd, bool open) {
  const bool alone = record_->holders.load() == 1;
  if (engaged() && !foreign_) {
    if (!alone && open && !far_)
      leave(fd, Reason::shared_by_processes);
    else if (open && alone && unread() > 0) {
      // The kernel sends RST instead of FIN if bytes were not read; so do we.
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      system_calls().setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    } else if (open && alone) {
      part(fd, true);
    }
    if (has_place_) place_.mine().stage.store(static_cast<std::uint32_t>(Stage::gone));
  }
  record_->holders.fetch_sub(1);
  fd_.store(-1);
  closed_.store(true);
  if (engaged()) ring_all(*table(), place_.mine());  // wakes threads that wait here
}

}  // namespace weir::sockets

// Reading and writing an engaged connection, through whichever carrier has the next byte.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sockets/calls/pieces.hpp"
#include "sockets/calls/system_calls.hpp"
#include "sockets/connection.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/far_messages.hpp"
#include "sockets/kernel_counts.hpp"
#include "sockets/link.hpp"
#include "sockets/runtime.hpp"
#include "sockets/settings.hpp"
#include "sockets/spin.hpp"

namespace weir::sockets {
namespace {

constexpr std::size_t piece_bytes =
    16 * 1024;  // of a large write: the reader begins while the rest is copied

bool blocks(int fd, int flags) {
  return (flags & MSG_DONTWAIT) == 0 && (system_calls().fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

ssize_t failed(int error) {
  errno = error;
  return -1;
}

// Nagle's algorithm keeps a small segment back until the one before it is acknowledged. A peer that answers
// by the ring sends no acknowledgement along, so that would take the 40 ms of a delayed one. Setting
// TCP_NODELAY pushes what waits (tcp(7)); a program that set it itself has nothing waiting.
void push(int fd) {
  const SystemCalls& calls = system_calls();
  int set = 0;
  socklen_t size = sizeof set;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &set, &size) != 0 || set != 0) return;
  for (const int value : {1, 0}) calls.setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value);
}

using Message = std::array<std::byte, FarReturn::bytes>;

ssize_t take_message(int fd, Message& into, int flags) {
  iovec room{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &room;
  message.msg_iovlen = 1;
  return system_calls().recvmsg(fd, &message, flags | MSG_DONTWAIT);
}

}  // namespace

void Connection::note_cpu() {
  const auto cpu = static_cast<std::uint32_t>(::sched_getcpu() + 1);
  auto& word = place_.mine().cpu;
  if (word.load(std::memory_order_relaxed) != cpu) word.store(cpu, std::memory_order_relaxed);
}

bool Connection::peer_on_this_cpu() const {
  return place_.peer().cpu.load(std::memory_order_relaxed) ==
         static_cast<std::uint32_t>(::sched_getcpu() + 1);
}

ssize_t Connection::receive_ring(Incoming& in, std::span<const iovec> into, std::size_t skip,
                                 std::size_t bytes, bool peek) {
  const std::uint64_t ring_bytes = settings().ring_bytes;
  const std::byte* const ring = link_->ring();
  const std::uint64_t place = in.place();
  const std::size_t first = std::min<std::uint64_t>(bytes, ring_bytes - place);
  std::size_t done = copy_into(into, skip, ring + place, first);
  if (done == first && first < bytes) done += copy_into(into, skip + first, ring, bytes - first);
  note_cpu();
  if (!peek) in.took_ring(done);
  return static_cast<ssize_t>(done);
}

ssize_t Connection::receive_held(Incoming& in, std::span<const iovec> into, std::size_t skip,
                                 std::size_t bytes, bool peek) {
  const std::size_t done = held_.take(into, skip, bytes, peek);
  if (!peek) in.took_held(done);
  return static_cast<ssize_t>(done);
}

ssize_t Connection::receive_tcp(Incoming& in, int fd, std::span<const iovec> into, std::size_t skip,
                                std::uint64_t most, int flags) {
  Part part(into, skip, most);
  const auto seen = in_sets_.kernel_events.seen();
  const ssize_t got = system_calls().recvmsg(fd, &part.message(), (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) in_sets_.kernel_events.emptied(seen);
  if (got <= 0 || (flags & MSG_PEEK) != 0) return got;
  const auto bytes = static_cast<std::size_t>(got);
  if (bytes < total_bytes(part.pieces())) in_sets_.kernel_events.emptied(seen);
  const auto now = static_cast<std::size_t>(in.took_tcp(bytes));
  if (now == bytes) return got;
  held_.keep(part.pieces(), now, bytes - now);  // they were sent after the bytes in the ring
  return static_cast<ssize_t>(now);
}

// An epoll set may have been rung for bytes in the ring while bytes of TCP had to be read first. The TCP
// bytes have been read now, and nobody else will ring for those in the ring.
void Connection::announce_ring(const Incoming& in) {
  const Source next = in.look();
  if (next.kind == Source::Kind::ring && next.bytes > 0) ring_all(*table(), place_.mine());
}

// Between hosts, an end from the kernel proves only that the peer's process is gone. Unless the
// peer has said that all its RDMA bytes come before, some may never have been sent. An error is
// better than a missing byte.
bool Connection::ends_without_word() {
  return far_ && !foreign_ && place_.peer().receives.load() != 0 && place_.peer().done.load() == 0;
}

// If nothing is there: -1 with EAGAIN.
ssize_t Connection::receive_now(int fd, std::span<const iovec> into, std::size_t skip, int flags) {
  Gate gate(record_->receive_gate);
  if (!gate.exclusive()) return failed(ECONNRESET);
  const bool peek = (flags & MSG_PEEK) != 0;
  const std::size_t wanted = total_bytes(into) - skip;
  Incoming in = incoming();
  if (lost_) return failed(ECONNRESET);
  Link* const far = far_ && !off_link() ? link_.get() : nullptr;
  Source source = in.next();
  if (far != nullptr && (source.kind != Source::Kind::ring || source.bytes == 0)) {
    far->look();
    source = in.next();
  }
  const TellsAtEnd telling(far);
  for (bool again = true;;) {
    if (source.kind == Source::Kind::broken) {
      lost_ = true;
      reset(fd);
      return failed(ECONNRESET);
    }
    if (source.kind == Source::Kind::ring && source.bytes > 0)
      return receive_ring(in, into, skip, std::min<std::uint64_t>(source.bytes, wanted), peek);
    if (source.kind == Source::Kind::tcp && !held_.empty()) {
      const ssize_t got =
          receive_held(in, into, skip, std::min<std::uint64_t>({source.bytes, held_.size(), wanted}), peek);
      announce_ring(in);
      return got;
    }
    if (pending_error_ != 0) return failed(std::exchange(pending_error_, 0));
    ssize_t got = 0;
    if (source.kind == Source::Kind::tcp) {
      got = receive_tcp(in, fd, into, skip, source.bytes, flags);
      if (got > 0) {
        announce_ring(in);
        return got;
      }
    } else {
      // Only the kernel knows of the end and of errors.
      char byte = 0;
      iovec room{&byte, 1};
      msghdr message{};
      message.msg_iov = &room;
      message.msg_iovlen = 1;
      const auto seen = in_sets_.kernel_events.seen();
      got = system_calls().recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) in_sets_.kernel_events.emptied(seen);
    }
    const int error = got < 0 ? errno : 0;
    if (far != nullptr && error != EAGAIN) far->look();
    // What came by the ring before the end is visible now. Look once more, so that nothing is missed.
    const Source now = in.next();
    if (now != source || got > 0) {
      if (got > 0 && now == source && far != nullptr) {
        Gate sends(record_->send_gate);
        if (!sends.try_exclusive() || !take_return(fd)) return failed(EAGAIN);
        if (lost_) return failed(ECONNRESET);
        source = in.next();
        continue;
      }
      if (got > 0 && now == source && !again) {
        lost_ = true;  // TCP bytes although the peer is in the ring: somebody else writes there
        reset(fd);
        return failed(ECONNRESET);
      }
      again = now != source;
      if (error != 0 && error != EAGAIN && error != EINTR) pending_error_ = error;
      source = now;
      continue;
    }
    if (got == 0 && ends_without_word()) {
      lost_ = true;
      reset(fd);
      return failed(ECONNRESET);
    }
    return got < 0 ? failed(error) : got;
  }
}

ssize_t Connection::receive_as_kernel(int fd, std::span<const iovec> into, int flags, Reason why,
                                      const Uncancelled& call) {
  leave(fd, why);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(into.data());
  message.msg_iovlen = into.size();
  const Cancellable kernels(call);
  return system_calls().recvmsg(fd, &message, flags);
}

// Waits until all that is wanted can be peeked at. It may come by both carriers, so unless it is there
// already the kernel does it. Less is an answer, too: what was read from TCP before its turn cannot be put
// back.
ssize_t Connection::peek_all(int fd, std::span<const iovec> into, int flags, const Uncancelled& call) {
  const ssize_t got = receive_now(fd, into, 0, flags);
  const bool fails = got < 0 && errno != EAGAIN;
  if (fails || got == 0 || got == static_cast<ssize_t>(total_bytes(into)) || !blocks(fd, flags)) return got;
  {
    Gate gate(record_->receive_gate);
    if (!gate.exclusive()) return failed(ECONNRESET);
    if (!held_.empty()) return got;
  }
  return receive_as_kernel(fd, into, flags, Reason::splice, call);
}

ssize_t Connection::receive(int fd, std::span<const iovec> into, int flags) {
  ::pthread_testcancel();
  const Uncancelled call;
  return receive_as(fd, into, flags, call);
}

ssize_t Connection::receive_as(int fd, std::span<const iovec> into, int flags, const Uncancelled& call) {
  if ((flags & MSG_OOB) != 0) return receive_as_kernel(fd, into, flags, Reason::urgent_data, call);
  if ((flags & MSG_TRUNC) != 0) return receive_as_kernel(fd, into, flags, Reason::splice, call);
  if (foreign_ && stays() == Reason::none) leave(fd, Reason::shared_by_processes);
  const std::size_t wanted = total_bytes(into);
  const bool peeks = (flags & MSG_PEEK) != 0, all = (flags & MSG_WAITALL) != 0 && !peeks;
  if (wanted == 0) {  // recv() of nothing waits until there is something
    char byte = 0;
    const iovec one{&byte, 1};
    return std::min<ssize_t>(receive_as(fd, {&one, 1}, (flags & ~MSG_WAITALL) | MSG_PEEK, call), 0);
  }
  if (peeks && (flags & MSG_WAITALL) != 0) return peek_all(fd, into, flags, call);
  const int before = errno;
  std::size_t done = 0;
  for (;;) {
    const ssize_t got = receive_now(fd, into, done, flags);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
      if (!all || done == wanted) break;
      continue;
    }
    if (got == 0) break;  // the end of the stream
    if ((errno != EAGAIN && errno != EINTR) || !blocks(fd, flags)) {
      if (done > 0) break;
      return -1;
    }
    int error = 0;
    if (!wait(fd, false, error, call)) {
      if (done > 0) break;
      return failed(error);
    }
    if (Descriptors::find(fd) != this) return failed(EBADF);  // closed meanwhile; the number may be reused
  }
  errno = before;
  return static_cast<ssize_t>(done);
}

bool Connection::may_enter_ring(int fd, const Outgoing& out) {
  const Side& peer = place_.peer();
  if (stays() != Reason::none || foreign_ || !out.may_enter_ring() || peer.receives.load() == 0 ||
      !link_->settled() || link_->lost() || !link_->takes_more() || place_.mine().done.load() != 0 ||
      static_cast<Stage>(peer.stage.load()) != Stage::linked || record_->holders.load() != 1)
    return false;
  if (far_ && !after_full_.may_enter()) return false;
  if (settings().change_every != 0 && since_change_ < settings().change_every && since_change_ != 0)
    return false;
  const auto counts = kernel_counts(fd);
  if (!counts || !counts->established) return false;
  if (counts->agree_on_written(record_->end.sent_tcp.load(), accepted_)) return true;
  keep_to_tcp(fd, Reason::unseen_calls);
  return false;
}

// 0: there is no room, even after a short wait; -1: the link is lost.
ssize_t Connection::send_by_ring(Outgoing& out, std::span<const iovec> from, std::size_t skip) {
  std::uint64_t room = out.room();
  if (room == 0) {
    PollBudget& budget = thread_budget();
    begin_looking(budget, PollBudget::TimePoint::clock::now());
    while (room == 0 && look_again(budget)) {
      link_->look();
      room = out.room();
    }
  }
  if (room == Outgoing::broken) return -1;
  const std::uint64_t wanted = std::min<std::uint64_t>(room, total_bytes(from) - skip);
  std::uint64_t done = 0;
  bool woke = false;
  const auto begun = std::chrono::steady_clock::now();
  note_cpu();
  const bool beside_peer = peer_on_this_cpu();
  while (done < wanted && link_->takes_more()) {
    const std::uint64_t place = out.place();
    const auto bytes = std::min({wanted - done, peer_ring_bytes_ - place, std::uint64_t{piece_bytes}});
    if (!link_->write(from, skip + done, bytes, place, beside_peer)) {
      trace("a write into the peer's ring failed");
      return done > 0 ? static_cast<ssize_t>(done) : -1;
    }
    out.put(bytes);
    if (far_)
      link_->tell();
    else
      woke |= ring_all(*table(), place_.peer());
    done += bytes;
  }
  if (!far_) {
    const auto now = std::chrono::steady_clock::now();
    pace_to(place_.peer().process.load()).sent_by_ring(now, now - begun, woke);
  }
  auto& counter = place_.mine().by_ring;
  counter.store(counter.load(std::memory_order_relaxed) + done, std::memory_order_relaxed);
  return static_cast<ssize_t>(done);
}

bool Connection::hand_back(int fd) {
  const std::uint64_t from = outgoing().first_unread();
  if (!resend(fd, from)) return false;
  notify_peer();
  return true;
}

// Sends by TCP what lies in the peer's ring from there on, and leaves the ring there.
bool Connection::resend(int fd, std::uint64_t from) {
  constexpr int longest_ms = 900;
  const std::uint64_t bytes = record_->end.sent.load() - from;
  std::vector<std::byte> unread(bytes);
  const std::uint64_t place = from % peer_ring_bytes_, first = std::min(bytes, peer_ring_bytes_ - place);
  if (bytes > 0 && (!link_->read(unread.data(), first, place) ||
                    (bytes > first && !link_->read(unread.data() + first, bytes - first, 0))))
    return false;
  for (std::size_t done = 0; done < bytes;) {
    iovec piece{unread.data() + done, bytes - done};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    const ssize_t sent = system_calls().sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    pollfd writable{fd, POLLOUT, 0};
    const timespec longest{.tv_sec = 0, .tv_nsec = longest_ms * 1'000'000L};
    if (sent > 0)
      done += static_cast<std::size_t>(sent);
    else if (errno != EAGAIN || system_calls().ppoll(&writable, 1, &longest, nullptr) <= 0)
      return false;
  }
  push(fd);
  record_->end.sent_tcp.fetch_add(bytes);
  outgoing().leave_ring_at(from);
  return true;
}

// Returning to TCP between hosts when RDMA packets no longer pass (a firewall, a route) although TCP does.
//
// If the peer's NIC acknowledges nothing for `max_silence`, this end stops its queue pair, so nothing more
// arrives in its ring, and sends a FarReturn over the TCP connection: how much has arrived. The peer, which
// reads the ring, finds a byte of TCP there, takes the message and sends its own. Each end then sends again
// by TCP what the other has not got, and goes on there for good. A peer that was merely stopped does so when
// it runs again. No program reads these messages, because each end sends one only if
// 1. both directions use their rings, and
// 2. the peer knows that it does (placed()), and has not left the ring itself: it sends no byte by TCP before
//    this end knows (Connection::send_now()).
// Otherwise the connection waits, as with a peer that is stopped, and if only the peer finds that it cannot,
// it is reset.

// With both gates held. False: the peer might take the message for the program's bytes.
bool Connection::ask_return(int fd) {
  Side& mine = place_.mine();
  mine.why_not.store(static_cast<std::uint32_t>(Reason::path_lost));
  if (!sends_by_ring() || !gets_by_ring() || !link_->placed() || lost_ || !held_.empty()) return false;
  link_->stop();
  return_.arrived = place_.peer().sender.produced.load();
  const Message message =
      bytes_of(FarReturn{.arrived = return_.arrived, .conversation = conversation(settings().secret)});
  iovec piece{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (system_calls().sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) !=
      static_cast<ssize_t>(message.size())) {
    lost_ = true;
    reset(fd, Reason::path_lost);
    return false;
  }
  std::uint32_t none = 0;
  record_->stays.compare_exchange_strong(none, static_cast<std::uint32_t>(Reason::path_lost));
  return_.state.store(Return::asked);
  trace("descriptor %d %s: back to TCP", fd, text(Reason::path_lost));
  return true;
}

// With both gates held: takes the peer's message if it is there. False: not yet.
bool Connection::take_return(int fd) {
  Message bytes{};
  const ssize_t got = take_message(fd, bytes, MSG_PEEK);
  if (got <= 0) return false;
  const Message like = bytes_of(FarReturn{});
  constexpr std::size_t magic_bytes = 8;
  if (std::memcmp(bytes.data(), like.data(), std::min(static_cast<std::size_t>(got), magic_bytes)) == 0 &&
      got < static_cast<ssize_t>(bytes.size()))
    return false;
  const auto message = read_return(bytes);
  Outgoing out = outgoing();
  const bool fits = message &&
                    mirror(conversation(settings().secret), message->conversation) == Likeness::same &&
                    message->arrived >= out.first_unread() && message->arrived <= record_->end.sent.load();
  if (!fits || (return_.state.load() == Return::none && !ask_return(fd)) ||
      take_message(fd, bytes, 0) != static_cast<ssize_t>(bytes.size()) || !resend(fd, message->arrived)) {
    lost_ = true;
    reset(fd, fits ? Reason::path_lost : Reason::nonsense);
    return true;
  }
  Side& peer = place_.peer();
  peer.sender.tcp_from.store(return_.arrived);
  peer.sender.changes.store(peer.sender.changes.load() + 1);
  peer.done.store(1);  // its end is the kernel's to report
  return_.state.store(Return::done);
  ring_all(*table(), place_.mine());
  return true;
}

// With the send gate held. False: not yet; waits for a moment.
bool Connection::await_return(int fd) {
  constexpr long nap_ns = 2'000'000;
  for (const bool last : {false, true}) {
    {
      Gate receives(record_->receive_gate);
      if (receives.exclusive() && take_return(fd)) return true;
    }
    if (last) break;
    pollfd one{fd, POLLIN, 0};
    const timespec longest{.tv_sec = 0, .tv_nsec = nap_ns};
    system_calls().ppoll(&one, 1, &longest, nullptr);
  }
  send_blocked_.store(true);
  return false;
}

// Sends by TCP, where the connection stays for good: leave_for_child().
ssize_t Connection::send_as_child(int fd, std::span<const iovec> from, std::size_t skip, int flags) {
  if (lost_) return failed(ECONNRESET);
  Part part(from, skip, Incoming::no_limit);
  const ssize_t sent = system_calls().sendmsg(fd, &part.message(), flags | MSG_DONTWAIT);
  if (sent > 0) outgoing().sent_tcp(static_cast<std::uint64_t>(sent));
  return sent;
}

ssize_t Connection::send_now(int fd, std::span<const iovec> from, std::size_t skip, int flags) {
  Gate gate(record_->send_gate);
  if (!gate.exclusive()) return failed(ECONNRESET);
  Outgoing out = outgoing();
  const std::uint64_t every = settings().change_every;
  if (return_.state.load() == Return::asked && !await_return(fd)) return failed(EAGAIN);
  if (far_ && off_link()) return send_as_child(fd, from, skip, flags);
  // Look how far the peer has read only when room grows short.
  if (far_ && (!out.by_ring() || out.room() < peer_ring_bytes_ / 2)) link_->look();
  if (link_->lost() && (out.by_ring() || !link_->settled())) {
    // We cannot know which bytes the peer has.
    reset(fd);
    return failed(ECONNRESET);
  }
  Pace& pace = pace_to(place_.peer().process.load());
  const bool was_by_ring = out.by_ring();
  const auto begun = std::chrono::steady_clock::now();
  const bool pays = far_ || every != 0 || settings().wakes_by_ring || pace.ring_pays(begun);
  if (out.by_ring()) {
    const auto want = static_cast<Want>(place_.peer().receiver.wants_tcp.load());
    if (want == Want::unread_back && !hand_back(fd)) {
      reset(fd);
      return failed(ECONNRESET);
    }
    if (!pays || want == Want::tcp || static_cast<Stage>(place_.peer().stage.load()) != Stage::linked ||
        (every != 0 && since_change_ >= every)) {
      out.leave_ring();
      since_change_ = 1;
    }
  } else if (pays && may_enter_ring(fd, out) && out.enter_ring()) {
    if (every == 0 || far_)
      trace("descriptor %d sends by RDMA from byte %lu on", fd,
            static_cast<unsigned long>(record_->end.sent.load()));
    since_change_ = 0;
  }
  if (out.by_ring()) {
    const ssize_t sent = send_by_ring(out, from, skip);
    if (sent > 0) {
      since_change_ += static_cast<std::uint64_t>(sent);
      after_full_.sent_by_ring(static_cast<std::uint64_t>(sent));
      return sent;
    }
    // A full ring must not make the program wait: TCP buffers more, and programs count on that.
    out.leave_ring();
    after_full_.was_full();
    if (sent < 0 && far_) {
      reset(fd);
      return failed(ECONNRESET);
    }
    if (sent < 0) {
      record_->stays.store(static_cast<std::uint32_t>(Reason::link_lost));
      place_.mine().why_not.store(static_cast<std::uint32_t>(Reason::link_lost));
    }
  }
  if (far_) {
    // The peer must know where TCP goes on before it sees a byte of it.
    constexpr std::chrono::milliseconds longest{2};
    link_->tell();
    if (!settle(longest, &Link::placed)) {
      send_blocked_.store(true);
      if (!link_->placed()) return failed(EAGAIN);
      send_blocked_.store(false);
    }
  }
  Part part(from, skip, every != 0 ? every : Incoming::no_limit);
  const ssize_t sent = system_calls().sendmsg(fd, &part.message(), flags | MSG_DONTWAIT);
  if (sent >= 0 || errno == EAGAIN)
    in_sets_.lacks_room.store(sent < static_cast<ssize_t>(total_bytes(part.pieces())),
                              std::memory_order_relaxed);
  if (sent > 0) {
    if (was_by_ring) push(fd);
    pace.sent_by_tcp(std::chrono::steady_clock::now() - begun);
    after_full_.sent_by_tcp(static_cast<std::uint64_t>(sent));
    out.sent_tcp(static_cast<std::uint64_t>(sent));
    since_change_ += static_cast<std::uint64_t>(sent);
    place_.mine().by_tcp.store(record_->end.sent_tcp.load(std::memory_order_relaxed),
                               std::memory_order_relaxed);
  }
  return sent;
}

ssize_t Connection::send(int fd, std::span<const iovec> from, int flags) {
  ::pthread_testcancel();
  const Uncancelled call;
  if ((flags & (MSG_OOB | MSG_ZEROCOPY)) != 0) leave(fd, Reason::urgent_data);
  if (foreign_ && stays() == Reason::none) leave(fd, Reason::shared_by_processes);
  const std::size_t wanted = total_bytes(from);
  const int before = errno;
  std::size_t done = 0;
  while (done < wanted || wanted == 0) {
    const ssize_t sent = send_now(fd, from, done, flags);
    if (sent >= 0) {
      done += static_cast<std::size_t>(sent);
      if (wanted == 0) break;
      continue;
    }
    if (errno == EAGAIN && blocks(fd, flags)) {
      int error = 0;
      if (wait(fd, true, error, call) && Descriptors::find(fd) == this) continue;
      if (error == 0) error = EBADF;
      errno = error;
    }
    if (done > 0) break;
    return -1;
  }
  errno = before;
  return static_cast<ssize_t>(done);
}

}  // namespace weir::sockets

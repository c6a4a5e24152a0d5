// Waiting for descriptors. The kernel's TCP, pipes and unix sockets stay in use; only their waiting is ours:
// a thread that would sleep gives the baton back, and looks again when something has been written. What is
// written on one host of this machine is readable at once, so no real time enters.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>
#include <vector>

#include "twin/inside/clocks.hpp"
#include "twin/inside/masks.hpp"
#include "twin/inside/network_quiet.hpp"
#include "twin/inside/port_calls.hpp"
#include "twin/inside/readiness_calls.hpp"
#include "twin/inside/timers.hpp"

namespace weir::twin {
namespace {

int packets_descriptor = -1;

bool blocks(int descriptor) {
  const int flags = WEIR_NEXT(fcntl)(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

bool is_ready(int descriptor, short events) {
  pollfd look{descriptor, events, 0};
  return WEIR_NEXT(poll)(&look, 1, 0) != 0;  // also if it is no descriptor: the call says so
}

bool over_network(int descriptor) {
  int domain = 0;
  socklen_t bytes = sizeof domain;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 &&
         (domain == AF_INET || domain == AF_INET6);
}

// Also through an epoll set, which may be in another set.
bool arrived_by_network(int descriptor) {
  return over_network(descriptor) || std::ranges::any_of(all_in_epoll(descriptor), [](int member) {
           return over_network(member) && is_ready(member, POLLIN);
         });
}

// What took the network's time to arrive is seen that much later.
void after_network(int descriptor, const char* what) {
  if (arrived_by_network(descriptor)) advance_to(now() + arena().tcp_latency, what);
}

Ticks timeout_of(int descriptor, int option) {
  timeval limit{};
  socklen_t bytes = sizeof limit;
  if (::getsockopt(descriptor, SOL_SOCKET, option, &limit, &bytes) != 0) return no_time;
  if (limit.tv_sec == 0 && limit.tv_usec == 0) return no_time;
  return now() + ticks_of(timespec{limit.tv_sec, limit.tv_usec * 1000});
}

// 0: the call will not sleep. -1: errno says why not.
int until_ready(int descriptor, short events, const char* what) {
  if (!blocks(descriptor) || is_ready(descriptor, events)) return 0;
  const Ticks deadline = timeout_of(descriptor, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO);
  do {
    if (now() >= deadline) return errno = EAGAIN, -1;
    wait_for({.kind = Wait::descriptors, .deadline = deadline, .what = what, .descriptor = descriptor});
    ::pthread_testcancel();
  } while (!is_ready(descriptor, events));
  if (events == POLLIN) after_network(descriptor, what);
  return 0;
}

// A loop over calls that never wait must end, too.
template <class Result>
Result in_vain(Result result) {
  if (result < 0 && errno == EAGAIN && looked_too_often()) {
    const int saved = errno;
    wait_for({.kind = Wait::descriptors, .deadline = after_ns(1000), .what = "a look at a descriptor"});
    errno = saved;
  }
  return result;
}

template <class Call>
ssize_t receive(int descriptor, int flags, const char* what, Call call) {
  if ((flags & MSG_DONTWAIT) != 0) return in_vain(call(flags));
  if ((flags & MSG_WAITALL) == 0 && until_ready(descriptor, POLLIN, what) != 0) return -1;
  return in_vain(call(flags));
}

// Something was sent.
void sent_to(int descriptor) {
  if (over_network(descriptor)) wait_until_delivered(descriptor);
  ++arena().sent;
  wrote();
}

// A blocking stream sends all of it.
template <class Call>
ssize_t transmit(int descriptor, std::size_t bytes, int flags, const char* what, Call call) {
  if ((flags & MSG_DONTWAIT) != 0 || !blocks(descriptor)) {
    const ssize_t sent = call(std::size_t{0}, flags);
    if (sent >= 0) sent_to(descriptor);
    return in_vain(sent);
  }
  std::size_t done = 0;
  do {
    const ssize_t sent = call(done, flags | MSG_DONTWAIT);
    if (sent >= 0) {
      sent_to(descriptor);
      done += static_cast<std::size_t>(sent);
    } else if (errno != EAGAIN) {
      return done != 0 ? static_cast<ssize_t>(done) : -1;
    } else {
      wait_for({.kind = Wait::descriptors, .what = what, .descriptor = descriptor});
    }
  } while (done < bytes);
  return static_cast<ssize_t>(done);
}

// What is left of the pieces behind the first `done` bytes.
std::vector<iovec> behind(std::span<const iovec> pieces, std::size_t done) {
  std::vector<iovec> rest;
  for (iovec piece : pieces) {
    const std::size_t skipped = std::min(done, piece.iov_len);
    done -= skipped;
    if (skipped == piece.iov_len) continue;
    rest.push_back({static_cast<std::byte*>(piece.iov_base) + skipped, piece.iov_len - skipped});
  }
  return rest;
}

bool is_socket(int descriptor) {
  int type;
  socklen_t bytes = sizeof type;
  const int saved = errno;
  const bool yes = ::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0;
  errno = saved;
  return yes;
}

bool is_pipe(int descriptor) {
  struct stat found{};
  const int saved = errno;
  const bool yes = ::fstat(descriptor, &found) == 0 && S_ISFIFO(found.st_mode);
  errno = saved;
  return yes;
}

// A pipe that is ready takes PIPE_BUF bytes without waiting.
ssize_t write_pieces(int descriptor, const void* from, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    if (until_ready(descriptor, POLLOUT, "write") != 0) return done != 0 ? static_cast<ssize_t>(done) : -1;
    const ssize_t written = WEIR_NEXT(write)(descriptor, static_cast<const std::byte*>(from) + done,
                                             std::min<std::size_t>(bytes - done, PIPE_BUF));
    if (written < 0) return done != 0 ? static_cast<ssize_t>(done) : -1;
    done += static_cast<std::size_t>(written);
    wrote();
  }
  return static_cast<ssize_t>(done);
}

// The kernel may hold small segments back until an acknowledgement comes, by its own clock.
void send_at_once(int descriptor) {
  const int on = 1;
  const int saved = errno;
  if (over_network(descriptor)) ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  errno = saved;
}

int poll_until(pollfd* descriptors, nfds_t count, Ticks deadline, const char* what) {
  for (bool waited = false;; waited = true) {
    const int ready = WEIR_NEXT(poll)(descriptors, count, 0);
    if (ready != 0 || now() >= deadline) {
      if (ready <= 0 || !waited) return ready;
      for (nfds_t i = 0; i < count; ++i)
        if ((descriptors[i].revents & POLLIN) != 0) {
          after_network(descriptors[i].fd, what);
          break;
        }
      return ready;
    }
    const bool handled = wait_for({.kind = Wait::descriptors,
                                   .deadline = deadline,
                                   .what = what,
                                   .descriptor = count != 0 ? descriptors[0].fd : -1,
                                   .more = static_cast<std::uint32_t>(std::max<nfds_t>(count, 1) - 1)});
    ::pthread_testcancel();
    if (handled) return errno = EINTR, -1;
  }
}

Ticks deadline_of_ms(int ms) {
  return ms < 0 ? no_time : after_ns(static_cast<std::uint64_t>(ms) * 1'000'000);
}

// A call with no time to wait, in a loop, must end, too.
int looked(int ready) {
  if (ready == 0 && looked_too_often())
    wait_for({.kind = Wait::descriptors, .deadline = after_ns(1000), .what = "a look at descriptors"});
  return ready;
}

int epoll_until(int epoll, epoll_event* events, int count, Ticks deadline) {
  for (bool waited = false;; waited = true) {
    const int ready = WEIR_NEXT(epoll_wait)(epoll, events, count, 0);
    if (ready != 0 || now() >= deadline) {
      for (int i = 0; waited && i < ready; ++i)
        if ((events[i].events & EPOLLIN) != 0 && arrived_by_network(in_epoll(epoll, events[i].data.u64))) {
          advance_to(now() + arena().tcp_latency, "epoll_wait");
          break;
        }
      return ready;
    }
    const bool handled = wait_for(
        {.kind = Wait::descriptors, .deadline = deadline, .what = "epoll_wait", .descriptor = epoll});
    ::pthread_testcancel();
    if (handled) return errno = EINTR, -1;
  }
}

int select_until(int count, fd_set* reads, fd_set* writes, fd_set* errors, Ticks deadline) {
  std::vector<pollfd> descriptors;
  const auto in = [](int fd, const fd_set* set) { return set != nullptr && FD_ISSET(fd, set); };
  for (int fd = 0; fd < count; ++fd) {
    const int events =
        (in(fd, reads) ? POLLIN : 0) | (in(fd, writes) ? POLLOUT : 0) | (in(fd, errors) ? POLLPRI : 0);
    if (events != 0) descriptors.push_back({fd, static_cast<short>(events), 0});
  }
  const bool looks = deadline <= now();
  const int ready = poll_until(descriptors.data(), descriptors.size(), deadline, "select");
  if (looks) looked(ready);
  if (ready < 0) return ready;
  for (fd_set* const set : {reads, writes, errors})
    if (set != nullptr) FD_ZERO(set);
  int bits = 0;
  for (const pollfd& one : descriptors) {
    if ((one.revents & POLLNVAL) != 0) return errno = EBADF, -1;
    const auto mark = [&](fd_set* set, int asked, int got) {
      if (set == nullptr || (one.events & asked) == 0 || (one.revents & got) == 0) return;
      FD_SET(one.fd, set);
      ++bits;
    };
    mark(reads, POLLIN, POLLIN | POLLHUP | POLLERR);
    mark(writes, POLLOUT, POLLOUT | POLLERR);
    mark(errors, POLLPRI, POLLPRI);
  }
  return bits;
}

}  // namespace

bool descriptor_is_ready(int descriptor) { return is_ready(descriptor, POLLIN); }

void watch_packets(int descriptor) {
  packets_descriptor = descriptor;
  if (controlled()) process().packet_thread = static_cast<std::uint32_t>(&self() - arena().threads.data());
}

void announce_packets() {
  const ProcessRecord& mine = process();
  if (packets_descriptor < 0 || mine.inbox_head == mine.inbox_tail) return;
  if (&arena().threads[mine.packet_thread % link::fabric::max_threads] != &self()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = WEIR_NEXT(write)(packets_descriptor, &one, sizeof one);
}

}  // namespace weir::twin

using namespace weir::twin;

extern "C" {

int poll(pollfd* descriptors, nfds_t count, int ms) {
  if (!controlled()) return WEIR_NEXT(poll)(descriptors, count, ms);
  const int ready = poll_until(descriptors, count, deadline_of_ms(ms), "poll");
  return ms == 0 ? looked(ready) : ready;
}
int ppoll(pollfd* descriptors, nfds_t count, const timespec* limit, const sigset_t* mask) {
  if (!controlled()) return WEIR_NEXT(ppoll)(descriptors, count, limit, mask);
  const MaskForCall masked(mask);
  return poll_until(descriptors, count, limit == nullptr ? no_time : now() + ticks_of(*limit), "ppoll");
}
int epoll_wait(int epoll, epoll_event* events, int count, int ms) {
  if (!controlled()) return WEIR_NEXT(epoll_wait)(epoll, events, count, ms);
  const int ready = epoll_until(epoll, events, count, deadline_of_ms(ms));
  return ms == 0 ? looked(ready) : ready;
}
int epoll_pwait(int epoll, epoll_event* events, int count, int ms, const sigset_t* mask) {
  if (!controlled()) return WEIR_NEXT(epoll_pwait)(epoll, events, count, ms, mask);
  const MaskForCall masked(mask);
  return ::epoll_wait(epoll, events, count, ms);
}
int epoll_pwait2(int epoll, epoll_event* events, int count, const timespec* limit, const sigset_t* mask) {
  if (!controlled()) return WEIR_NEXT(epoll_pwait2)(epoll, events, count, limit, mask);
  const MaskForCall masked(mask);
  return epoll_until(epoll, events, count, limit == nullptr ? no_time : now() + ticks_of(*limit));
}
int eventfd_read(int descriptor, eventfd_t* value) {
  return ::read(descriptor, value, sizeof *value) == sizeof *value ? 0 : -1;
}
int eventfd_write(int descriptor, eventfd_t value) {
  return ::write(descriptor, &value, sizeof value) == sizeof value ? 0 : -1;
}
int recvmmsg(int descriptor, mmsghdr* messages, unsigned count, int flags, timespec* limit) {
  if (!controlled()) return WEIR_NEXT(recvmmsg)(descriptor, messages, count, flags, limit);
  if ((flags & MSG_DONTWAIT) == 0 && until_ready(descriptor, POLLIN, "recvmmsg") != 0) return -1;
  return in_vain(WEIR_NEXT(recvmmsg)(descriptor, messages, count, flags | MSG_WAITFORONE, nullptr));
}
int sendmmsg(int descriptor, mmsghdr* messages, unsigned count, int flags) {
  if (!controlled()) return WEIR_NEXT(sendmmsg)(descriptor, messages, count, flags);
  if ((flags & MSG_DONTWAIT) == 0 && until_ready(descriptor, POLLOUT, "sendmmsg") != 0) return -1;
  const int sent = WEIR_NEXT(sendmmsg)(descriptor, messages, count, flags);
  if (sent >= 0) wrote();
  return sent;
}
ssize_t sendfile(int out, int in, off_t* offset, size_t bytes) noexcept {
  const ssize_t sent = WEIR_NEXT(sendfile)(out, in, offset, bytes);
  if (sent >= 0 && controlled()) wrote();
  return sent;
}
int select(int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* limit) {
  if (!controlled()) return WEIR_NEXT(select)(count, reads, writes, errors, limit);
  const Ticks deadline =
      limit == nullptr ? no_time : now() + ticks_of(timespec{limit->tv_sec, limit->tv_usec * 1000});
  return select_until(count, reads, writes, errors, deadline);
}
int pselect(int count, fd_set* reads, fd_set* writes, fd_set* errors, const timespec* limit,
            const sigset_t* mask) {
  if (!controlled()) return WEIR_NEXT(pselect)(count, reads, writes, errors, limit, mask);
  const MaskForCall masked(mask);
  return select_until(count, reads, writes, errors, limit == nullptr ? no_time : now() + ticks_of(*limit));
}

ssize_t read(int descriptor, void* to, size_t bytes) {
  if (!controlled()) return WEIR_NEXT(read)(descriptor, to, bytes);
  if (until_ready(descriptor, POLLIN, "read") != 0) return -1;
  return in_vain(WEIR_NEXT(read)(descriptor, to, bytes));
}
ssize_t recv(int descriptor, void* to, size_t bytes, int flags) {
  if (!controlled()) return WEIR_NEXT(recv)(descriptor, to, bytes, flags);
  return ::recvfrom(descriptor, to, bytes, flags, nullptr, nullptr);
}
ssize_t recvfrom(int descriptor, void* to, size_t bytes, int flags, sockaddr* from, socklen_t* length) {
  const auto direct = [&](int how) { return WEIR_NEXT(recvfrom)(descriptor, to, bytes, how, from, length); };
  if (!controlled()) return direct(flags);
  if ((flags & MSG_WAITALL) == 0 || (flags & (MSG_DONTWAIT | MSG_PEEK)) != 0 || !blocks(descriptor))
    return receive(descriptor, flags, "recv", direct);
  std::size_t done = 0;
  while (done < bytes) {
    if (until_ready(descriptor, POLLIN, "recv") != 0) return done != 0 ? static_cast<ssize_t>(done) : -1;
    const ssize_t got = WEIR_NEXT(recvfrom)(descriptor, static_cast<std::byte*>(to) + done, bytes - done,
                                            (flags & ~MSG_WAITALL) | MSG_DONTWAIT, from, length);
    if (got <= 0) return done != 0 ? static_cast<ssize_t>(done) : got;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}
ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  const auto direct = [&](int how) { return WEIR_NEXT(recvmsg)(descriptor, message, how); };
  return controlled() ? receive(descriptor, flags, "recvmsg", direct) : direct(flags);
}
int accept4(int descriptor, sockaddr* from, socklen_t* length, int flags) {
  if (!controlled()) return WEIR_NEXT(accept4)(descriptor, from, length, flags);
  if (until_ready(descriptor, POLLIN, "accept") != 0) return -1;
  const int accepted = WEIR_NEXT(accept4)(descriptor, from, length, flags);
  if (accepted >= 0) send_at_once(accepted);
  return in_vain(accepted);
}
int accept(int descriptor, sockaddr* from, socklen_t* length) {
  if (!controlled()) return WEIR_NEXT(accept)(descriptor, from, length);
  return ::accept4(descriptor, from, length, 0);
}
int connect(int descriptor, const sockaddr* to, socklen_t length) {
  if (controlled()) draw_port_before_connect(descriptor);
  const int result = WEIR_NEXT(connect)(descriptor, to, length);
  if (!controlled()) return result;
  send_at_once(descriptor);
  sent_to(descriptor);
  return result;
}
ssize_t write(int descriptor, const void* from, size_t bytes) {
  if (!controlled()) return WEIR_NEXT(write)(descriptor, from, bytes);
  if (is_socket(descriptor)) return ::send(descriptor, from, bytes, 0);
  if (bytes > PIPE_BUF && is_pipe(descriptor) && blocks(descriptor))
    return write_pieces(descriptor, from, bytes);
  if (until_ready(descriptor, POLLOUT, "write") != 0) return -1;
  const ssize_t written = WEIR_NEXT(write)(descriptor, from, bytes);
  if (written >= 0) wrote();
  return written;
}
ssize_t send(int descriptor, const void* from, size_t bytes, int flags) {
  if (!controlled()) return WEIR_NEXT(send)(descriptor, from, bytes, flags);
  return ::sendto(descriptor, from, bytes, flags, nullptr, 0);
}
ssize_t sendto(int descriptor, const void* from, size_t bytes, int flags, const sockaddr* to,
               socklen_t length) {
  if (!controlled()) return WEIR_NEXT(sendto)(descriptor, from, bytes, flags, to, length);
  return transmit(descriptor, bytes, flags, "send", [&](std::size_t done, int how) {
    return WEIR_NEXT(sendto)(descriptor, static_cast<const std::byte*>(from) + done, bytes - done, how, to,
                             length);
  });
}
ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  if (!controlled()) return WEIR_NEXT(sendmsg)(descriptor, message, flags);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < message->msg_iovlen; ++i) bytes += message->msg_iov[i].iov_len;
  return transmit(descriptor, bytes, flags, "sendmsg", [&](std::size_t done, int how) {
    if (done == 0) return WEIR_NEXT(sendmsg)(descriptor, message, how);
    std::vector<iovec> rest = behind({message->msg_iov, message->msg_iovlen}, done);
    msghdr more{};
    more.msg_iov = rest.data();
    more.msg_iovlen = rest.size();
    return WEIR_NEXT(sendmsg)(descriptor, &more, how);
  });
}
ssize_t writev(int descriptor, const iovec* pieces, int count) {
  if (!controlled()) return WEIR_NEXT(writev)(descriptor, pieces, count);
  if (is_socket(descriptor) && count >= 0) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces);
    message.msg_iovlen = static_cast<std::size_t>(count);
    return ::sendmsg(descriptor, &message, 0);
  }
  if (until_ready(descriptor, POLLOUT, "writev") != 0) return -1;
  const ssize_t written = WEIR_NEXT(writev)(descriptor, pieces, count);
  if (written >= 0) wrote();
  return written;
}
ssize_t readv(int descriptor, const iovec* pieces, int count) {
  if (!controlled()) return WEIR_NEXT(readv)(descriptor, pieces, count);
  if (until_ready(descriptor, POLLIN, "readv") != 0) return -1;
  return in_vain(WEIR_NEXT(readv)(descriptor, pieces, count));
}
// Weir's NIC reads its events so.
ssize_t preadv64v2(int descriptor, const iovec* pieces, int count, off64_t offset, int flags) {
  if (controlled() && (flags & RWF_NOWAIT) == 0 && until_ready(descriptor, POLLIN, "preadv2") != 0) return -1;
  const ssize_t got = WEIR_NEXT(preadv64v2)(descriptor, pieces, count, offset, flags);
  return controlled() ? in_vain(got) : got;
}
ssize_t preadv2(int descriptor, const iovec* pieces, int count, off_t offset, int flags) {
  return ::preadv64v2(descriptor, pieces, count, offset, flags);
}
int shutdown(int descriptor, int how) noexcept {
  const int result = WEIR_NEXT(shutdown)(descriptor, how);
  if (controlled()) sent_to(descriptor);
  return result;
}
int close(int descriptor) {
  if (descriptor >= 0 && descriptor == arena_descriptor()) return errno = EBADF, -1;
  if (controlled()) {
    timer_closed(descriptor);
    if (descriptor == packets_descriptor) packets_descriptor = -1;
    wrote();
  }
  return WEIR_NEXT(close)(descriptor);
}
int close_range(unsigned first, unsigned last, int flags) noexcept {
  if (controlled()) wrote();
  const int kept = arena_descriptor();
  const auto number = static_cast<unsigned>(kept);
  if (kept < 0 || first > number || last < number) return WEIR_NEXT(close_range)(first, last, flags);
  if (first < number && WEIR_NEXT(close_range)(first, number - 1, flags) != 0) return -1;
  return last == number ? 0 : WEIR_NEXT(close_range)(number + 1, last, flags);
}
void closefrom(int first) noexcept { ::close_range(static_cast<unsigned>(std::max(first, 0)), ~0u, 0); }
}

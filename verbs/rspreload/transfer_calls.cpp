// The C library's calls that read from and write to sockets. Entry points of other people's programs.
#include <rdma/rsocket.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "verbs/rspreload/callers.hpp"
#include "verbs/rspreload/descriptors.hpp"
#include "verbs/rspreload/next_call.hpp"

using namespace weir::rspreload;

namespace {

// As sendfile(2): from `*offset`, which moves on, or from where the file is.
ssize_t send_file(int to, int from, off64_t* offset, std::size_t count) {
  std::array<std::byte, 65536> part;
  off64_t at = offset != nullptr ? *offset : ::lseek64(from, 0, SEEK_CUR);
  if (at < 0) return -1;
  std::size_t sent = 0;
  ssize_t result = 0;
  while (sent < count) {
    const ssize_t got = ::pread64(from, part.data(), std::min(part.size(), count - sent), at);
    if (got <= 0) {
      result = got;
      break;
    }
    const ssize_t taken = ::rwrite(to, part.data(), static_cast<std::size_t>(got));
    if (taken < 0) {
      result = -1;
      break;
    }
    sent += static_cast<std::size_t>(taken);
    at += taken;
    if (taken < got) break;  // it does not wait
  }
  const int error = errno;
  if (offset != nullptr) {
    *offset = at;
  } else {
    ::lseek64(from, at, SEEK_SET);
  }
  errno = error;
  return sent > 0 ? static_cast<ssize_t>(sent) : result;
}

// What of `count` messages `transfer` has done: a failure is told when it is the first one's.
template <class Transfer>
int each(mmsghdr* messages, unsigned count, Transfer transfer) {
  unsigned done = 0;
  for (; done < count; ++done) {
    const ssize_t size = transfer(messages[done].msg_hdr, done);
    if (size < 0) return done > 0 ? static_cast<int>(done) : -1;
    messages[done].msg_len = static_cast<unsigned>(size);
  }
  return static_cast<int>(done);
}

bool has_passed(const timespec& moment) {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec > moment.tv_sec || (now.tv_sec == moment.tv_sec && now.tv_nsec >= moment.tv_nsec);
}

}  // namespace

extern "C" {

ssize_t read(int fd, void* data, size_t size) {
  WEIR_NEXT(ssize_t(int, void*, size_t), read);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rread(fd, data, size) : call(fd, data, size);
}

ssize_t __read_chk(int fd, void* data, size_t size, size_t limit) {
  WEIR_NEXT(ssize_t(int, void*, size_t, size_t), __read_chk);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) && size <= limit ? ::rread(fd, data, size)
                                                              : call(fd, data, size, limit);
}

ssize_t readv(int fd, const iovec* pieces, int count) {
  WEIR_NEXT(ssize_t(int, const iovec*, int), readv);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rreadv(fd, pieces, count) : call(fd, pieces, count);
}

ssize_t recv(int fd, void* data, size_t size, int flags) {
  WEIR_NEXT(ssize_t(int, void*, size_t, int), recv);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rrecv(fd, data, size, flags) : call(fd, data, size, flags);
}

ssize_t __recv_chk(int fd, void* data, size_t size, size_t limit, int flags) {
  WEIR_NEXT(ssize_t(int, void*, size_t, size_t, int), __recv_chk);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) && size <= limit ? ::rrecv(fd, data, size, flags)
                                                              : call(fd, data, size, limit, flags);
}

ssize_t recvfrom(int fd, void* data, size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  WEIR_NEXT(ssize_t(int, void*, size_t, int, sockaddr*, socklen_t*), recvfrom);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rrecvfrom(fd, data, size, flags, from, from_size)
                                             : call(fd, data, size, flags, from, from_size);
}

ssize_t __recvfrom_chk(int fd, void* data, size_t size, size_t limit, int flags, sockaddr* from,
                       socklen_t* from_size) {
  WEIR_NEXT(ssize_t(int, void*, size_t, size_t, int, sockaddr*, socklen_t*), __recvfrom_chk);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) && size <= limit
             ? ::rrecvfrom(fd, data, size, flags, from, from_size)
             : call(fd, data, size, limit, flags, from, from_size);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  WEIR_NEXT(ssize_t(int, msghdr*, int), recvmsg);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rrecvmsg(fd, message, flags) : call(fd, message, flags);
}

int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  WEIR_NEXT(int(int, mmsghdr*, unsigned, int, timespec*), recvmmsg);
  if (!WEIR_OF_PROGRAM() || !is_rsocket(fd)) return call(fd, messages, count, flags, timeout);
  timespec end{};
  if (timeout != nullptr) {
    ::clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += timeout->tv_sec;
    end.tv_nsec += timeout->tv_nsec;
    end.tv_sec += end.tv_nsec / 1'000'000'000;
    end.tv_nsec %= 1'000'000'000;
  }
  const bool one_is_enough = (flags & MSG_WAITFORONE) != 0;
  return each(messages, count, [&](msghdr& message, unsigned done) -> ssize_t {
    // recvmmsg(2): the time is looked at after each message only.
    if (done > 0 && timeout != nullptr && has_passed(end)) return -1;
    const int waits = one_is_enough && done > 0 ? MSG_DONTWAIT : 0;
    return ::rrecvmsg(fd, &message, (flags & ~MSG_WAITFORONE) | waits);
  });
}

ssize_t write(int fd, const void* data, size_t size) {
  WEIR_NEXT(ssize_t(int, const void*, size_t), write);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rwrite(fd, data, size) : call(fd, data, size);
}

ssize_t writev(int fd, const iovec* pieces, int count) {
  WEIR_NEXT(ssize_t(int, const iovec*, int), writev);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rwritev(fd, pieces, count) : call(fd, pieces, count);
}

ssize_t send(int fd, const void* data, size_t size, int flags) {
  WEIR_NEXT(ssize_t(int, const void*, size_t, int), send);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rsend(fd, data, size, flags) : call(fd, data, size, flags);
}

ssize_t sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  WEIR_NEXT(ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t), sendto);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rsendto(fd, data, size, flags, to, to_size)
                                             : call(fd, data, size, flags, to, to_size);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  WEIR_NEXT(ssize_t(int, const msghdr*, int), sendmsg);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rsendmsg(fd, message, flags) : call(fd, message, flags);
}

int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  WEIR_NEXT(int(int, mmsghdr*, unsigned, int), sendmmsg);
  if (!WEIR_OF_PROGRAM() || !is_rsocket(fd)) return call(fd, messages, count, flags);
  return each(messages, count,
              [&](const msghdr& message, unsigned) { return ::rsendmsg(fd, &message, flags); });
}

ssize_t sendfile(int to, int from, off_t* offset, size_t count) {
  WEIR_NEXT(ssize_t(int, int, off_t*, size_t), sendfile);
  return WEIR_OF_PROGRAM() && is_rsocket(to) ? send_file(to, from, offset, count)
                                             : call(to, from, offset, count);
}

ssize_t sendfile64(int to, int from, off64_t* offset, size_t count) {
  WEIR_NEXT(ssize_t(int, int, off64_t*, size_t), sendfile64);
  return WEIR_OF_PROGRAM() && is_rsocket(to) ? send_file(to, from, offset, count)
                                             : call(to, from, offset, count);
}

}  // extern "C"

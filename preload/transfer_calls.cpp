// The C library's calls that read and write. Entry points for other people's programs: signatures are
// the C library's, and errno is that of the call which did the work.
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "preload/next_call.hpp"
#include "sockets/calls/pieces.hpp"
#include "sockets/calls/system_calls.hpp"
#include "sockets/connection_objects.hpp"
#include "sockets/connections.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/runtime.hpp"

using weir::sockets::Connection;
using weir::sockets::Connections;
using weir::sockets::Descriptors;
using weir::sockets::Gate;
using weir::sockets::Reason;
using weir::sockets::total_bytes;
using weir::sockets::Use;

namespace {

using Pieces = std::span<const iovec>;

bool leave_alone(int fd) {
  const Connection* const it = Descriptors::find(fd);
  return it == nullptr || it->plain();
}

// After a failed call on an engaged connection: true if the descriptor was closed by a call that we did not
// see and its number now belongs to a file.
bool is_no_socket(int fd, ssize_t result) {
  if (result >= 0 || errno != ENOTSOCK) return false;
  Connections::forget(fd);
  return true;
}

// What the kernel refuses, as EINVAL or EMSGSIZE: it says so itself.
bool is_refused(Pieces pieces) {
  return pieces.size() > UIO_MAXIOV ||
         std::ranges::any_of(pieces, [](const iovec& one) { return one.iov_len > SSIZE_MAX; });
}

template <class Plain>
ssize_t receive_engaged(Connection& from, int fd, Pieces into, int flags, Plain plain) {
  if (is_refused(into)) return plain();
  const ssize_t got = from.receive(fd, into, flags);
  return is_no_socket(fd, got) ? plain() : got;
}

template <class Plain>
ssize_t send_engaged(Connection& to, int fd, Pieces from, int flags, Plain plain) {
  if (is_refused(from) || total_bytes(from) == 0) return plain();
  const ssize_t sent = to.send(fd, from, flags);
  return is_no_socket(fd, sent) ? plain() : sent;
}

// The socket's queue of errors is the kernel's and holds no byte of the stream.
bool leave_alone(int fd, int flags) { return (flags & MSG_ERRQUEUE) != 0 || leave_alone(fd); }

// A call that reads. `plain` makes the program's own call.
template <class Plain>
ssize_t receive(int fd, Pieces into, int flags, Plain plain) {
  if (leave_alone(fd, flags)) return plain();
  const Use use(fd);
  if (!use) return plain();
  if (use->engaged()) return receive_engaged(*use, fd, into, flags, plain);
  ssize_t got = -1;
  {
    Gate gate(use->record().receive_gate);
    if (!gate.share()) {
      if (use->engaged()) return receive_engaged(*use, fd, into, flags, plain);
      while (!gate.share()) ::sched_yield();  // another thread engages the connection: wait a moment
      if (use->engaged()) {
        gate.release();
        return receive_engaged(*use, fd, into, flags, plain);
      }
    }
    if (use->engaged()) {
      gate.release();
      return receive_engaged(*use, fd, into, flags, plain);
    }
    if ((flags & MSG_OOB) != 0) use->stay(fd, Reason::urgent_data);
    got = plain();
    if (got > 0 && (flags & (MSG_PEEK | MSG_OOB)) == 0) {
      if ((flags & MSG_TRUNC) != 0) use->stay(fd, Reason::unseen_calls);
      use->note_received(into, static_cast<std::size_t>(got));
    }
  }
  if (got > 0) Connections::consider(fd, *use);
  return got;
}

// read() and its kin, unlike recv(), return at once if they want nothing.
template <class Plain>
ssize_t read_into(int fd, Pieces into, int flags, Plain plain) {
  return total_bytes(into) == 0 ? plain() : receive(fd, into, flags, plain);
}

// A call that writes. `plain` makes the program's own call, `engaged` does its work on a connection that has
// changed.
template <class Plain, class Engaged>
ssize_t send_by(int fd, Pieces from, int flags, Plain plain, Engaged engaged) {
  if (leave_alone(fd)) return plain();
  const Use use(fd);
  if (!use) return plain();
  if (use->engaged()) return engaged(*use);
  ssize_t sent = -1;
  {
    Gate gate(use->record().send_gate);
    while (!gate.share()) {
      if (use->engaged()) return engaged(*use);
      ::sched_yield();
    }
    if (use->engaged()) {
      gate.release();
      return engaged(*use);
    }
    if ((flags & (MSG_OOB | MSG_ZEROCOPY)) != 0) use->stay(fd, Reason::urgent_data);
    sent = plain();
    if (sent > 0) use->note_sent(from, static_cast<std::size_t>(sent));
  }
  if (sent > 0) Connections::consider(fd, *use);
  return sent;
}

template <class Plain>
ssize_t send(int fd, Pieces from, int flags, Plain plain) {
  return send_by(fd, from, flags, plain,
                 [&](Connection& to) { return send_engaged(to, fd, from, flags, plain); });
}

// Descriptors that a message passes on leave our sight.
void pass_on(const msghdr* message) {
  if (message == nullptr || message->msg_controllen < sizeof(cmsghdr)) return;
  auto* const whole = const_cast<msghdr*>(message);
  for (cmsghdr* part = CMSG_FIRSTHDR(whole); part != nullptr; part = CMSG_NXTHDR(whole, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const int* const fds = reinterpret_cast<const int*>(CMSG_DATA(part));
    for (std::size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i)
      Connections::passed_on(fds[i]);
  }
}

Pieces pieces_of(const msghdr* message) {
  return message != nullptr ? Pieces{message->msg_iov, message->msg_iovlen} : Pieces{};
}

iovec one(const void* bytes, std::size_t count) { return {const_cast<void*>(bytes), count}; }

// A read from TCP reports no address beside the bytes.
void no_address(sockaddr*, socklen_t* size) {
  if (size != nullptr) *size = 0;
}

void stay(int fd, Reason why) {
  if (leave_alone(fd)) return;
  if (const Use use(fd); use) use->stay(fd, why);
}

// Copies a piece of a file into an engaged connection.
ssize_t send_file(Connection& to, int fd, int from, off_t* offset, std::size_t count) {
  if (offset == nullptr && ::lseek(from, 0, SEEK_CUR) < 0) {
    if (errno == ESPIPE) errno = EINVAL;  // what the kernel says of pipes and sockets
    return -1;
  }
  std::vector<std::byte> piece(std::min<std::size_t>(count, 1 << 16));
  std::size_t done = 0;
  while (done < count) {
    const std::size_t wanted = std::min(piece.size(), count - done);
    const off_t at = offset != nullptr ? *offset : ::lseek(from, 0, SEEK_CUR);
    const ssize_t got = at < 0 ? -1 : ::pread(from, piece.data(), wanted, at);
    if (got <= 0) return done > 0 ? static_cast<ssize_t>(done) : got;
    const iovec content = one(piece.data(), static_cast<std::size_t>(got));
    const ssize_t sent = to.send(fd, {&content, 1}, 0);
    if (sent <= 0) return done > 0 ? static_cast<ssize_t>(done) : sent;
    if (offset != nullptr)
      *offset += sent;
    else
      ::lseek(from, at + sent, SEEK_SET);
    done += static_cast<std::size_t>(sent);
    if (sent < got) break;
  }
  return static_cast<ssize_t>(done);
}

template <class Plain>
ssize_t send_file_or(int to, int from, off_t* offset, std::size_t count, Plain plain) {
  return send_by(to, {}, 0, plain, [&](Connection& it) { return send_file(it, to, from, offset, count); });
}

// With any other offset the kernel refuses a socket, and flags that are not listed here are its own.
constexpr off_t no_offset = -1;
bool is_for_sockets(int fd, off_t offset, int flags) {
  if (offset != no_offset) return false;
  if ((flags & ~(RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND)) == 0) return true;
  stay(fd, Reason::splice);
  return false;
}
int as_message_flags(int flags) { return (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0; }

Pieces pieces_of(const iovec* pieces, int count) {
  return {pieces, static_cast<std::size_t>(std::max(count, 0))};
}

}  // namespace

extern "C" {

ssize_t read(int fd, void* into, size_t count) {
  WEIR_NEXT(ssize_t(int, void*, size_t), read);
  const iovec room = one(into, count);
  return read_into(fd, {&room, 1}, 0, [&] { return call(fd, into, count); });
}

ssize_t __read_chk(int fd, void* into, size_t count, size_t limit) {
  WEIR_NEXT(ssize_t(int, void*, size_t, size_t), __read_chk);
  const iovec room = one(into, std::min(count, limit));
  return read_into(fd, {&room, 1}, 0, [&] { return call(fd, into, count, limit); });
}

ssize_t readv(int fd, const iovec* into, int count) {
  WEIR_NEXT(ssize_t(int, const iovec*, int), readv);
  return read_into(fd, pieces_of(into, count), 0, [&] { return call(fd, into, count); });
}

ssize_t preadv2(int fd, const iovec* into, int count, off_t offset, int flags) {
  WEIR_NEXT(ssize_t(int, const iovec*, int, off_t, int), preadv2);
  const auto plain = [&] { return call(fd, into, count, offset, flags); };
  if (!is_for_sockets(fd, offset, flags)) return plain();
  return read_into(fd, pieces_of(into, count), as_message_flags(flags), plain);
}

ssize_t preadv64v2(int fd, const iovec* into, int count, off64_t offset, int flags) {
  return ::preadv2(fd, into, count, offset, flags);
}

ssize_t recv(int fd, void* into, size_t count, int flags) {
  WEIR_NEXT(ssize_t(int, void*, size_t, int), recv);
  const iovec room = one(into, count);
  return receive(fd, {&room, 1}, flags, [&] { return call(fd, into, count, flags); });
}

ssize_t __recv_chk(int fd, void* into, size_t count, size_t limit, int flags) {
  WEIR_NEXT(ssize_t(int, void*, size_t, size_t, int), __recv_chk);
  const iovec room = one(into, std::min(count, limit));
  return receive(fd, {&room, 1}, flags, [&] { return call(fd, into, count, limit, flags); });
}

ssize_t recvfrom(int fd, void* into, size_t count, int flags, sockaddr* address, socklen_t* size) {
  WEIR_NEXT(ssize_t(int, void*, size_t, int, sockaddr*, socklen_t*), recvfrom);
  if (leave_alone(fd, flags)) return call(fd, into, count, flags, address, size);
  const iovec room = one(into, count);
  const ssize_t got =
      receive(fd, {&room, 1}, flags, [&] { return call(fd, into, count, flags, address, size); });
  if (got >= 0 && address != nullptr) no_address(address, size);
  return got;
}

ssize_t __recvfrom_chk(int fd, void* into, size_t count, size_t limit, int flags, sockaddr* address,
                       socklen_t* size) {
  WEIR_NEXT(ssize_t(int, void*, size_t, size_t, int, sockaddr*, socklen_t*), __recvfrom_chk);
  if (leave_alone(fd, flags)) return call(fd, into, count, limit, flags, address, size);
  const iovec room = one(into, std::min(count, limit));
  const ssize_t got =
      receive(fd, {&room, 1}, flags, [&] { return call(fd, into, count, limit, flags, address, size); });
  if (got >= 0 && address != nullptr) no_address(address, size);
  return got;
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  WEIR_NEXT(ssize_t(int, msghdr*, int), recvmsg);
  if (leave_alone(fd) || message == nullptr) return call(fd, message, flags);
  bool ours = true;
  const ssize_t got = receive(fd, pieces_of(message), flags, [&] {
    ours = false;
    return call(fd, message, flags);
  });
  if (ours && got >= 0) {
    message->msg_namelen = 0;
    message->msg_controllen = 0;
    message->msg_flags = 0;
  }
  return got;
}

int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  WEIR_NEXT(int(int, mmsghdr*, unsigned, int, timespec*), recvmmsg);
  stay(fd, Reason::splice);
  return call(fd, messages, count, flags, timeout);
}

ssize_t write(int fd, const void* from, size_t count) {
  WEIR_NEXT(ssize_t(int, const void*, size_t), write);
  const iovec content = one(from, count);
  return send(fd, {&content, 1}, 0, [&] { return call(fd, from, count); });
}

ssize_t writev(int fd, const iovec* from, int count) {
  WEIR_NEXT(ssize_t(int, const iovec*, int), writev);
  return send(fd, pieces_of(from, count), 0, [&] { return call(fd, from, count); });
}

ssize_t pwritev2(int fd, const iovec* from, int count, off_t offset, int flags) {
  WEIR_NEXT(ssize_t(int, const iovec*, int, off_t, int), pwritev2);
  const auto plain = [&] { return call(fd, from, count, offset, flags); };
  if (!is_for_sockets(fd, offset, flags)) return plain();
  return send(fd, pieces_of(from, count), as_message_flags(flags), plain);
}

ssize_t pwritev64v2(int fd, const iovec* from, int count, off64_t offset, int flags) {
  return ::pwritev2(fd, from, count, offset, flags);
}

ssize_t send(int fd, const void* from, size_t count, int flags) {
  WEIR_NEXT(ssize_t(int, const void*, size_t, int), send);
  const iovec content = one(from, count);
  return send(fd, {&content, 1}, flags, [&] { return call(fd, from, count, flags); });
}

ssize_t sendto(int fd, const void* from, size_t count, int flags, const sockaddr* address, socklen_t size) {
  WEIR_NEXT(ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t), sendto);
  const iovec content = one(from, count);
  return send(fd, {&content, 1}, flags, [&] { return call(fd, from, count, flags, address, size); });
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  WEIR_NEXT(ssize_t(int, const msghdr*, int), sendmsg);
  pass_on(message);
  return send(fd, pieces_of(message), flags, [&] { return call(fd, message, flags); });
}

int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  WEIR_NEXT(int(int, mmsghdr*, unsigned, int), sendmmsg);
  for (unsigned i = 0; messages != nullptr && i < count; ++i) pass_on(&messages[i].msg_hdr);
  stay(fd, Reason::splice);
  return call(fd, messages, count, flags);
}

ssize_t sendfile(int to, int from, off_t* offset, size_t count) {
  WEIR_NEXT(ssize_t(int, int, off_t*, size_t), sendfile);
  return send_file_or(to, from, offset, count, [&] { return call(to, from, offset, count); });
}

ssize_t sendfile64(int to, int from, off64_t* offset, size_t count) {
  WEIR_NEXT(ssize_t(int, int, off64_t*, size_t), sendfile64);
  return send_file_or(to, from, offset, count, [&] { return call(to, from, offset, count); });
}

ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t count, unsigned flags) {
  WEIR_NEXT(ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned), splice);
  stay(from, Reason::splice);
  stay(to, Reason::splice);
  return call(from, from_offset, to, to_offset, count, flags);
}

FILE* fdopen(int fd, const char* mode) noexcept {
  WEIR_NEXT(FILE * (int, const char*), fdopen);
  stay(fd, Reason::stdio);
  return call(fd, mode);
}

int vdprintf(int fd, const char* format, va_list arguments) {
  WEIR_NEXT(int(int, const char*, va_list), vdprintf);
  if (leave_alone(fd)) return call(fd, format, arguments);
  stay(fd, Reason::stdio);
  return call(fd, format, arguments);
}

int dprintf(int fd, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = ::vdprintf(fd, format, arguments);
  va_end(arguments);
  return written;
}

}  // extern "C"

// The C library's calls after which a descriptor is closed, or its number somebody else's.
//
// Entry points of other people's programs: signatures are the C library's, errno is that of the call behind.
#include <fcntl.h>
#include <linux/close_range.h>
#include <rdma/rsocket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <limits>

#include "verbs/rspreload/callers.hpp"
#include "verbs/rspreload/descriptors.hpp"
#include "verbs/rspreload/next_call.hpp"

using namespace weir::rspreload;

namespace {

// Whether it is for rclose(), which then has to be called.
bool taken(int fd) {
  return kind_of(fd) != Kind::plain && !in_borrowed_memory() && take_kind(fd) != Kind::plain;
}

// Before a copy of something plain takes the number.
void make_room(int fd) {
  if (taken(fd)) ::rclose(fd);
}

void close_all(unsigned first, unsigned last) {
  if (in_borrowed_memory()) return;
  for (int fd; (fd = next_not_plain(first, last)) >= 0;) make_room(fd);
}

int no_copy() {
  errno = EOPNOTSUPP;
  return -1;
}

}  // namespace

extern "C" {

int close(int fd) {
  WEIR_NEXT(int(int), close);
  return WEIR_OF_PROGRAM() && taken(fd) ? ::rclose(fd) : call(fd);
}

int close_range(unsigned first, unsigned last, int flags) noexcept {
  WEIR_NEXT(int(unsigned, unsigned, int), close_range);
  const bool closes = (flags & ~static_cast<int>(CLOSE_RANGE_UNSHARE)) == 0 && first <= last;
  if (closes && WEIR_OF_PROGRAM()) close_all(first, last);
  return call(first, last, flags);
}

void closefrom(int first) noexcept {
  WEIR_NEXT(void(int), closefrom);
  if (WEIR_OF_PROGRAM())
    close_all(static_cast<unsigned>(std::max(first, 0)), std::numeric_limits<int>::max());
  call(first);
}

// libuv, and with it Node.js, closes so. The C library's is looked up without a guard: threads that wait for
// one call this.
long syscall(long number, ...) noexcept {
  constinit static std::atomic<long (*)(long, ...)> next{nullptr};
  std::array<long, 6> a;
  va_list arguments;
  va_start(arguments, number);
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  const auto fd = static_cast<int>(a[0]);
  if (number == SYS_close && kind_of(fd) != Kind::plain && WEIR_OF_PROGRAM() && taken(fd))
    return ::rclose(fd);
  auto* call = next.load(std::memory_order_relaxed);
  if (call == nullptr) next.store(call = next_call<long(long, ...)>("syscall"), std::memory_order_relaxed);
  return call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int dup(int fd) {
  WEIR_NEXT(int(int), dup);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? no_copy() : call(fd);
}

int dup2(int fd, int as) {
  WEIR_NEXT(int(int, int), dup2);
  if (!WEIR_OF_PROGRAM() || fd == as) return call(fd, as);
  if (is_rsocket(fd)) return no_copy();
  make_room(as);
  return call(fd, as);
}

int dup3(int fd, int as, int flags) {
  WEIR_NEXT(int(int, int, int), dup3);
  if (!WEIR_OF_PROGRAM() || fd == as) return call(fd, as, flags);
  if (is_rsocket(fd)) return no_copy();
  make_room(as);
  return call(fd, as, flags);
}

}  // extern "C"

// Preloaded: the n-th call of one function fails, and if so told each call after it.
//
// WEIR_FAILS names the function, n, the error and how many calls fail, "mmap 2 12 1". The calls go to the
// kernel directly, since what looks functions up may allocate, and so call them.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

char function[32];
long first = 0;
long failing = 0;
int error = 0;
std::atomic<long> calls = 0;

[[gnu::constructor(101)]] void read_order() {
  if (const char* order = std::getenv("WEIR_FAILS"))
    if (std::sscanf(order, "%31s %ld %d %ld", function, &first, &error, &failing) != 4) std::abort();
}

bool fails(const char* name) {
  if (std::strcmp(name, function) != 0) return false;
  const long call = ++calls;
  if (call < first || call >= first + failing) return false;
  errno = error;
  return true;
}

}  // namespace

extern "C" {

void* mmap(void* at, size_t size, int rights, int flags, int fd, off_t offset) noexcept {
  if (fails("mmap")) return MAP_FAILED;
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, rights, flags, fd, offset));
}
int epoll_create1(int flags) noexcept {
  return fails("epoll_create1") ? -1 : static_cast<int>(::syscall(SYS_epoll_create1, flags));
}
int epoll_ctl(int epoll, int what, int fd, epoll_event* event) noexcept {
  return fails("epoll_ctl") ? -1 : static_cast<int>(::syscall(SYS_epoll_ctl, epoll, what, fd, event));
}
int fcntl(int fd, int what, ...) {
  va_list more;
  va_start(more, what);
  void* const argument = va_arg(more, void*);
  va_end(more);
  return fails("fcntl") ? -1 : static_cast<int>(::syscall(SYS_fcntl, fd, what, argument));
}
ssize_t read(int fd, void* into, size_t size) {
  return fails("read") ? -1 : ::syscall(SYS_read, fd, into, size);
}
int signalfd(int fd, const sigset_t* mask, int flags) noexcept {
  constexpr size_t kernels_mask_size = 8;
  return fails("signalfd") ? -1
                           : static_cast<int>(::syscall(SYS_signalfd4, fd, mask, kernels_mask_size, flags));
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (fails("pthread_create")) return error;
  static const auto create = reinterpret_cast<Create*>(::dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, run, argument);
}
}

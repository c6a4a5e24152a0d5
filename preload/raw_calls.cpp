// System calls by number, through the C library's syscall(). libuv closes descriptors that way, and some
// programs do all their input and output that way. Entry points for other people's programs. A
// program's own syscall instructions bypass us.
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <optional>

#include "preload/next_call.hpp"
#include "sockets/calls/cancellation.hpp"
#include "sockets/connection_objects.hpp"
#include "sockets/connections.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/runtime.hpp"

using weir::sockets::ConnectionObjects;
using weir::sockets::Connections;
using weir::sockets::Descriptors;
using weir::sockets::Reason;
using weir::sockets::Uncancelled;

namespace {

using Words = std::array<long, 6>;

template <class T>
T* pointer(long word) {
  return reinterpret_cast<T*>(word);  // NOLINT(performance-no-int-to-ptr): that is what a system call gets
}

// A call on one of our descriptors. nullopt: only the kernel can do it.
std::optional<long> on_ours(long number, const Words& a) {
  const Uncancelled point;  // syscall() is no cancellation point, whatever it calls
  const auto fd = static_cast<int>(a[0]);
  const auto count = static_cast<int>(a[2]);
  const auto bytes = static_cast<std::size_t>(a[2]);
  const auto flags = static_cast<int>(a[3]);
  switch (number) {
    case SYS_close:
      return ::close(fd);
    case SYS_connect:
      return ::connect(fd, pointer<const sockaddr>(a[1]), static_cast<socklen_t>(a[2]));
    case SYS_shutdown:
      return ::shutdown(fd, static_cast<int>(a[1]));
    case SYS_dup:
      return ::dup(fd);
    case SYS_dup2:
      return ::dup2(fd, static_cast<int>(a[1]));
    case SYS_dup3:
      return ::dup3(fd, static_cast<int>(a[1]), count);
    case SYS_read:
      return ::read(fd, pointer<void>(a[1]), bytes);
    case SYS_write:
      return ::write(fd, pointer<const void>(a[1]), bytes);
    case SYS_readv:
      return ::readv(fd, pointer<const iovec>(a[1]), count);
    case SYS_writev:
      return ::writev(fd, pointer<const iovec>(a[1]), count);
    case SYS_preadv2:
      return ::preadv2(fd, pointer<const iovec>(a[1]), count, a[3], static_cast<int>(a[5]));
    case SYS_pwritev2:
      return ::pwritev2(fd, pointer<const iovec>(a[1]), count, a[3], static_cast<int>(a[5]));
    case SYS_recvfrom:
      return ::recvfrom(fd, pointer<void>(a[1]), bytes, flags, pointer<sockaddr>(a[4]),
                        pointer<socklen_t>(a[5]));
    case SYS_sendto:
      return ::sendto(fd, pointer<const void>(a[1]), bytes, flags, pointer<const sockaddr>(a[4]),
                      static_cast<socklen_t>(a[5]));
    case SYS_recvmsg:
      return ::recvmsg(fd, pointer<msghdr>(a[1]), count);
    case SYS_sendmsg:
      return ::sendmsg(fd, pointer<const msghdr>(a[1]), count);
    case SYS_sendfile:
      return ::sendfile(fd, static_cast<int>(a[1]), pointer<off_t>(a[2]), static_cast<std::size_t>(a[3]));
    case SYS_epoll_wait:
      return ::epoll_wait(fd, pointer<epoll_event>(a[1]), count, flags);
    case SYS_epoll_pwait:
      return ::epoll_pwait(fd, pointer<epoll_event>(a[1]), count, flags, pointer<const sigset_t>(a[4]));
    case SYS_epoll_ctl:
      return ::epoll_ctl(fd, static_cast<int>(a[1]), count, pointer<epoll_event>(a[3]));
    default:
      return std::nullopt;
  }
}

// We cannot see what the kernel does for an io_uring, so every connection stays on TCP.
void everything_stays() {
  ConnectionObjects::all_stay(Reason::io_uring);
  Connections::sets_are_watched();
}

// liburing makes its system calls by its own instructions, so its functions are hidden too. The look-up also
// finds a liburing that was loaded only for a plugin.
template <class Call>
Call* of_liburing(const char* name) {
  if (auto* const next = weir::preload::next_call<Call>(name)) return next;
  void* const library = ::dlopen("liburing.so.2", RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr ? reinterpret_cast<Call*>(::dlsym(library, name)) : nullptr;
}

template <class Call, class... Arguments>
int make_ring(Call* call, Arguments... arguments) {
  const int result = call != nullptr ? call(arguments...) : -ENOSYS;
  if (result >= 0) everything_stays();
  return result;
}

// libseccomp also asks, with no filter, what the kernel can do.
bool sets_filter(const Words& a) {
  const auto operation = static_cast<unsigned>(a[0]);
  return (operation == SECCOMP_SET_MODE_FILTER && a[2] != 0) ||
         (operation == SECCOMP_SET_MODE_STRICT && a[1] == 0);
}

}  // namespace

extern "C" {

int prctl(int option, ...) noexcept {
  WEIR_NEXT(int(int, ...), prctl);
  std::array<unsigned long, 4> a;
  va_list arguments;
  va_start(arguments, option);
  for (unsigned long& argument : a) argument = va_arg(arguments, unsigned long);
  va_end(arguments);
  if (option == PR_SET_SECCOMP) Connections::step_aside();
  return call(option, a[0], a[1], a[2], a[3]);
}

int io_uring_queue_init(unsigned entries, void* ring, unsigned flags) {
  return make_ring(of_liburing<int(unsigned, void*, unsigned)>("io_uring_queue_init"), entries, ring, flags);
}

int io_uring_queue_init_params(unsigned entries, void* ring, void* parameters) {
  return make_ring(of_liburing<int(unsigned, void*, void*)>("io_uring_queue_init_params"), entries, ring,
                   parameters);
}

// No guard protects the look-up of the C library's function: threads that wait for a guard call this.
long syscall(long number, ...) noexcept {
  constinit static std::atomic<long (*)(long, ...)> next{nullptr};
  Words a;
  va_list arguments;
  va_start(arguments, number);
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  auto* call = next.load(std::memory_order_relaxed);
  if (call == nullptr)
    next.store(call = weir::preload::next_call<long(long, ...)>("syscall"), std::memory_order_relaxed);
  switch (number) {
    case SYS_futex:  // nearly all calls
      break;
    case SYS_close_range:
      return ::close_range(static_cast<unsigned>(a[0]), static_cast<unsigned>(a[1]), static_cast<int>(a[2]));
    case SYS_poll: {
      const Uncancelled point;
      return ::poll(pointer<pollfd>(a[0]), static_cast<nfds_t>(a[1]), static_cast<int>(a[2]));
    }
    case SYS_prctl:
      return ::prctl(static_cast<int>(a[0]), a[1], a[2], a[3], a[4]);
    case SYS_seccomp:
      if (sets_filter(a)) Connections::step_aside();
      break;
    case SYS_io_uring_setup: {
      const long made = call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
      if (made >= 0) everything_stays();
      return made;
    }
    default:
      if (const auto fd = static_cast<int>(a[0]);
          Descriptors::is_known(fd) || weir::sockets::is_out_of_the_way(fd))
        if (const auto result = on_ours(number, a)) return *result;
  }
  return call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"

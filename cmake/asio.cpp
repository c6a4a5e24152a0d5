// Asio's own sources, compiled once. ASIO_SEPARATE_COMPILATION is set for all that use it.
//
// Asio adds two descriptors of its own to the epoll set of an io_context, one that wakes a sleeping thread
// and one for its timers, and does not look whether the kernel took them (it refuses at
// fs.epoll.max_user_watches and without memory). Without them, a thread that sleeps in run() misses what
// others post and when timers are due. Here the io_context then throws, as for the epoll set itself. Of the
// descriptors that users register Asio reports the refusal; theirs are the ones that ask for EPOLLHUP.
#include <sys/epoll.h>

#include <asio/detail/throw_error.hpp>
#include <asio/error.hpp>
#include <cerrno>

namespace {

int added_to_epoll(int set, int what, int descriptor, epoll_event* event) {
  const int result = epoll_ctl(set, what, descriptor, event);
  if (result != 0 && what == EPOLL_CTL_ADD && (event->events & EPOLLHUP) == 0)
    asio::detail::throw_error(asio::error_code(errno, asio::error::get_system_category()),
                              "epoll: the wake-up descriptor of an io_context");
  return result;
}

}  // namespace

#define epoll_ctl added_to_epoll
#include <asio/impl/src.hpp>
#undef epoll_ctl

#include "kv/net/poller.hpp"

#include <cerrno>
#include <system_error>

#include "waiting/turn.hpp"

namespace weir::kv {

namespace {
int make_epoll() {
  const int fd = epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  return fd;
}
}  // namespace

SocketPoller::SocketPoller(asio::io_context& io, std::function<void()> after_round)
    : io_(io), epoll_(io, make_epoll()), after_round_(std::move(after_round)) {
  wait();
}

void SocketPoller::add(int fd, Watcher& watcher, std::uint32_t events) {
  epoll_event event{events, {.ptr = &watcher}};
  if (epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, fd, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

void SocketPoller::change(int fd, Watcher& watcher, std::uint32_t events) {
  epoll_event event{events, {.ptr = &watcher}};
  epoll_ctl(epoll_.native_handle(), EPOLL_CTL_MOD, fd, &event);
}

void SocketPoller::remove(int fd) { epoll_ctl(epoll_.native_handle(), EPOLL_CTL_DEL, fd, nullptr); }

void SocketPoller::wait() {
  epoll_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const std::error_code& error) {
    if (error) return;
    rounds();
    wait();
  });
}

// A trip through Asio costs three system calls (its epoll_wait, ours, and an epoll_ctl that arms the wait
// again); another round costs one. So rounds continue while anything arrives. But they are few, and only
// while all are short, so that timers and other transports get their turn.
void SocketPoller::rounds() {
  constexpr int most_rounds = 8;
  const waiting::Turn turn;
  for (int i = 0; i < most_rounds; ++i) {
    if (round() == 0 || turn.over()) return;
  }
}

int SocketPoller::round() {
  const int ready = epoll_wait(epoll_.native_handle(), events_.data(), static_cast<int>(events_.size()), 0);
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events_[static_cast<std::size_t>(i)];
    static_cast<Watcher*>(event.data.ptr)->ready(event.events);
  }
  if (ready > 0) after_round_();
  return ready;
}

}  // namespace weir::kv

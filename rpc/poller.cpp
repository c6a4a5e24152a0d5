#include "rpc/poller.hpp"

#include <sched.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>
#include <system_error>

namespace weir::rpc {

asio::execution_context::id Poller::id;

namespace {
using Time = rdma::PollPolicy::TimePoint::clock;

template <class Action>
struct AtExit {
  Action action;
  ~AtExit() { action(); }
};
template <class Action>
AtExit(Action) -> AtExit<Action>;

int make_epoll() {
  const int fd = epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  return fd;
}
}  // namespace

Poller::Poller(asio::io_context& io)
    : asio::execution_context::service(io),
      io_(io),
      epoll_(io, make_epoll()),
      scratch_(std::make_unique_for_overwrite<std::byte[]>(scratch_bytes)) {
  asked_.reserve(events_.size());
}

void Poller::shutdown() {
  std::error_code ignored;
  epoll_.close(ignored);
  asked_.clear();
}

bool Poller::add(int fd, Watcher& watcher, std::uint32_t events) {
  // Who removes it has no use for an exception. In a round one may be removed for each that is added.
  if (const std::size_t most = removed_.size() + watched_ + 1; removed_.capacity() < most)
    removed_.reserve(2 * most);
  epoll_event event{events, {.ptr = &watcher}};
  if (epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, fd, &event) != 0) return false;
  watcher.watched_ = true;
  if (watched_++ == 0 && !waiting_ && !in_round_) sleep();
  return true;
}

void Poller::change(int fd, Watcher& watcher, std::uint32_t events) {
  epoll_event event{events, {.ptr = &watcher}};
  epoll_ctl(epoll_.native_handle(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd, Watcher& watcher) {
  if (!std::exchange(watcher.watched_, false)) return;
  if (epoll_.is_open()) epoll_ctl(epoll_.native_handle(), EPOLL_CTL_DEL, fd, nullptr);
  if (in_round_) removed_.push_back(&watcher);
  if (--watched_ == 0 && epoll_.is_open()) epoll_.cancel();  // let run() return
}

void Poller::sleep() {
  waiting_ = true;
  epoll_.async_wait(asio::posix::stream_descriptor::wait_read,
                    for_wait_.serve([this](const std::error_code& error) {
                      waiting_ = false;
                      if (!error) return rounds();
                      // Cancelled for want of sockets, and there is one again.
                      if (watched_ > 0 && epoll_.is_open()) sleep();
                    }));
}

// Posted, so that whatever else is ready runs between two looks.
void Poller::go_on() {
  waiting_ = true;
  const auto before = Time::now();
  sched_yield();
  policy_.yielded(before, Time::now());
  asio::post(io_, for_wait_.serve([this] {
    waiting_ = false;
    rounds();
  }));
}

void Poller::rounds() {
  constexpr int most_rounds = 8;  // then timers and other transports get their turn
  bool progress = false;
  try {
    for (int i = 0; i < most_rounds && round(); ++i) progress = true;
  } catch (...) {  // leaves io_context::run(); whoever calls it again must find this going on
    if (watched_ == 0)
      tell_asked();  // forgets them: none is watched any more
    else
      asked_.empty() ? sleep() : go_on();
    throw;
  }
  if (watched_ == 0) return;
  policy_.after_round(Time::now(), progress) == rdma::PollPolicy::Next::yield ? go_on() : sleep();
}

bool Poller::round() {
  in_round_ = true;
  const AtExit round_over{[this] {
    in_round_ = false;
    removed_.clear();
  }};
  tell_asked();  // who is left of a round that an exception ended
  const int ready = epoll_wait(epoll_.native_handle(), events_.data(), static_cast<int>(events_.size()), 0);
  auto since = Time::now();
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events_[static_cast<std::size_t>(i)];
    auto* watcher = static_cast<Watcher*>(event.data.ptr);
    if (!removed_.empty() && std::ranges::find(removed_, watcher) != removed_.end()) continue;
    asked_.push_back(watcher->shared_from_this());
    watcher->ready(event.events);
    if (const auto now = Time::now(); now - since >= most_held) {
      tell_asked();
      since = now;
    }
  }
  tell_asked();
  return ready > 0;
}

// In the order in which they were asked. One that throws has been told.
void Poller::tell_asked() {
  while (told_ < asked_.size()) {
    const std::shared_ptr<Watcher> watcher = std::move(asked_[told_++]);
    if (watcher->watched_) watcher->round_ended();
  }
  asked_.clear();
  told_ = 0;
}

}  // namespace weir::rpc

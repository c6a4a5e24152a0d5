#include "verbs/rsocket/service.hpp"

#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "link/not_cancelled.hpp"
#include "link/own_thread.hpp"

namespace weir::rsocket {

// Lives until exit: its thread may be anywhere in it then. A child leaves its parent's alone, whose locks may
// be held by threads that do not exist there.
Service& Service::instance() {
  static std::mutex mutex;
  static Service* service = nullptr;
  static pid_t owner = 0;
  const std::scoped_lock hold(mutex);
  if (service == nullptr || owner != ::getpid()) {
    service = new Service;
    owner = ::getpid();
  }
  return *service;
}

int Service::start() {
  if (running_) return 0;
  if (!epoll_) epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return errno;
  try {
    link::own_thread([this] { run(); }).detach();
    running_ = true;
  } catch (const std::system_error&) {
  }
  return running_ ? 0 : EAGAIN;
}

int Service::watch(int fd, std::function<void()> readable) {
  const std::scoped_lock hold(mutex_);
  if (const int error = start(); error != 0) return error;
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return errno;
  calls_[fd] = std::make_shared<const std::function<void()>>(std::move(readable));
  return 0;
}

void Service::forget(int fd) {
  const link::NotCancelled whole;
  std::unique_lock hold(mutex_);
  const auto found = calls_.find(fd);
  if (found == calls_.end()) return;
  const Call call = found->second;
  calls_.erase(found);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  finished_.wait(hold, [&] { return current_ != call; });
}

void Service::run() {
  pthread_setname_np(pthread_self(), "weir-rsocket");
  std::array<epoll_event, 16> events;
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      std::unique_lock hold(mutex_);
      const auto found = calls_.find(events[static_cast<std::size_t>(i)].data.fd);
      if (found == calls_.end()) continue;
      current_ = found->second;
      const Call call = current_;
      hold.unlock();
      (*call)();
      hold.lock();
      current_.reset();
      finished_.notify_all();
    }
  }
}

}  // namespace weir::rsocket

#include "verbs/cm/event_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "link/not_cancelled.hpp"

namespace weir::cm {
namespace {

// The number of destroyed channels kept. A program that is about to end has one or two.
constexpr std::size_t kept_destroyed = 16;

std::atomic<bool> fork_reported = false;

}  // namespace

void Event::set_private_data(std::span<const std::byte> data, std::size_t field_bytes, const void*& pointer,
                             std::uint8_t& length) {
  private_bytes.fill(std::byte{0});
  std::copy_n(data.begin(), std::min(data.size(), private_bytes.size()), private_bytes.begin());
  pointer = private_bytes.data();
  length = static_cast<std::uint8_t>(std::min(field_bytes, private_bytes.size() - 1));
}

int Event::type() const {
  int type;
  static_assert(sizeof event == sizeof type);
  std::memcpy(&type, &event, sizeof type);
  return type;
}

void Event::set_type(int type) { std::memcpy(&event, &type, sizeof type); }

EventChannel::EventChannel(int descriptor) : maker_(::getpid()), owner_(descriptor) { fd = descriptor; }

EventChannel* EventChannel::open() {
  const int descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  return descriptor < 0 ? nullptr : new EventChannel(descriptor);
}

void EventChannel::destroy(EventChannel& channel) {
  const link::NotCancelled whole;
  static auto& mutex = *new std::mutex;  // never destructed: threads outlive static storage
  static auto& last = *new std::deque<std::unique_ptr<EventChannel>>;
  std::deque<EventPtr> unread;
  {
    const std::scoped_lock hold(channel.mutex_);
    const int flags = ::fcntl(channel.fd, F_GETFL);
    if (flags >= 0 && (flags & O_NONBLOCK) == 0) channel.destroyer_ = std::this_thread::get_id();
    channel.fd = -1;
    channel.owner_ = link::UniqueFd();
    unread.swap(channel.queue_);
  }
  const std::scoped_lock hold(mutex);
  last.emplace_back(&channel);
  if (last.size() > kept_destroyed) last.pop_front();
}

bool EventChannel::has_waiters_left_behind() {
  const std::scoped_lock hold(mutex_);
  return destroyer_ && *destroyer_ != std::this_thread::get_id();
}

void EventChannel::push(EventPtr event) {
  const link::NotCancelled whole;
  const std::scoped_lock hold(mutex_);
  queue_.push_back(std::move(event));
  const std::uint64_t one = 1;
  // Cannot fail: the count would have to pass 2^64.
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
}

EventPtr EventChannel::take() {
  if (maker_ != ::getpid()) {
    if (!fork_reported.exchange(true))
      std::fputs(
          "weir: an event channel does not outlive fork(): make it, and its identifiers, in the child "
          "(a daemon: after daemon())\n",
          stderr);
    errno = ENODEV;
    return nullptr;
  }
  for (;;) {
    std::uint64_t one;
    if (::read(fd, &one, sizeof one) != sizeof one) {
      if (errno != EBADF || !has_waiters_left_behind()) return nullptr;
      for (;;) ::pause();
    }
    const std::scoped_lock hold(mutex_);
    if (debt_ > 0) {
      --debt_;
      continue;
    }
    if (queue_.empty()) continue;  // another writer: the descriptor was closed behind our back
    auto event = std::move(queue_.front());
    queue_.pop_front();
    return event;
  }
}

bool EventChannel::readable() const {
  pollfd events{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&events, 1, 0) == 1;
}

void EventChannel::take_back_one() {
  std::uint64_t one;
  iovec into{.iov_base = &one, .iov_len = sizeof one};
  auto got = ::preadv2(fd, &into, 1, -1, RWF_NOWAIT);
  if (got < 0 && errno == EOPNOTSUPP) {
    // A kernel before 5.8. We could block only if another reader took this count in between, and then
    // only until the next event.
    if (readable()) got = ::read(fd, &one, sizeof one);
  }
  if (got != sizeof one) ++debt_;
}

std::vector<EventPtr> EventChannel::withdraw(const Id& id) {
  const link::NotCancelled whole;
  std::vector<EventPtr> withdrawn;
  const std::scoped_lock hold(mutex_);
  for (auto at = queue_.begin(); at != queue_.end();) {
    if ((*at)->counted_on == &id) {
      withdrawn.push_back(std::move(*at));
      at = queue_.erase(at);
      take_back_one();
    } else {
      ++at;
    }
  }
  return withdrawn;
}

EventPtr EventChannel::withdraw_request(const rdma_cm_id& request, bool keep_last) {
  const link::NotCancelled whole;
  const std::scoped_lock hold(mutex_);
  const auto found = std::ranges::find_if(queue_, [&](const EventPtr& event) {
    return event->id == &request && event->type() == RDMA_CM_EVENT_CONNECT_REQUEST;
  });
  if (found == queue_.end() || (keep_last && queue_.size() == 1)) return nullptr;
  EventPtr withdrawn = std::move(*found);
  queue_.erase(found);
  take_back_one();
  return withdrawn;
}

}  // namespace weir::cm

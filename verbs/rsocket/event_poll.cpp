#include "verbs/rsocket/event_poll.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "verbs/rsocket/table.hpp"

namespace weir::rsocket {
namespace {

// After so many looks in vain an rsocket is armed. A look costs a little of us, an event a system call of the
// peer: dear for one that has data every few rounds, cheap for one that has not.
constexpr unsigned most_looks_in_vain = 200;
// A wait that finds rsockets ready asks the kernel as well every so often, so that nobody starves there.
constexpr unsigned waits_without_kernel = 8;
constexpr std::size_t looks_between_yields = 100;
// How long a thread sleeps that cannot be woken for every rsocket.
constexpr int blind_sleep_ms = 10;
constexpr std::size_t most_from_kernel = 64;

// What a descriptor in the kernel's set is there for.
enum class For : std::uint32_t { plain, socket, wake };

std::uint64_t tag(For what, int number) {
  return std::uint64_t{static_cast<std::uint32_t>(what)} << 32 | static_cast<std::uint32_t>(number);
}
For what_for(const epoll_event& event) { return static_cast<For>(event.data.u64 >> 32); }
int number_of(const epoll_event& event) {
  return static_cast<int>(static_cast<std::uint32_t>(event.data.u64));
}

// The events of poll(2) and of epoll(7) that a socket has are the same bits.
constexpr std::uint32_t poll_events = 0x7fff;

}  // namespace

Result<std::shared_ptr<EventPoll>> EventPoll::open(int flags) {
  link::UniqueFd kernel(::epoll_create1(flags));
  if (!kernel) return std::unexpected(errno);
  std::shared_ptr<EventPoll> made(new EventPoll(std::move(kernel)));
  made->wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->wake_) return std::unexpected(errno);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = tag(For::wake, 0)}};
  if (::epoll_ctl(made->kernel_.get(), EPOLL_CTL_ADD, made->wake_.get(), &event) != 0)
    return std::unexpected(errno);
  return made;
}

EventPoll::~EventPoll() {
  for (const auto& [number, watch] : watches_) watch->socket->unwatch(*watch);
}

void EventPoll::close() {
  closed_ = true;
  wake_sleeper();
}

void EventPoll::wake_sleeper() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void EventPoll::touch(Watch& watch) {
  watch.news = true;
  if (watch.by_eye) return;
  {
    const std::scoped_lock hold(touched_mutex_);
    if (!std::exchange(watch.touched, true)) touched_.push_back(&watch);
  }
  if (sleepers_ > 0) wake_sleeper();
}

// ---- what is in the set

int EventPoll::control(int operation, int fd, const epoll_event* event) {
  if (event == nullptr && operation != EPOLL_CTL_DEL) return EFAULT;
  const std::scoped_lock hold(mutex_);
  SocketPtr socket = find(fd);  // with the lock: one that is closed meanwhile is forgotten after this
  if (!socket) return control_plain(operation, fd, event);
  const int error = control_socket(operation, std::move(socket), event);
  if (error == 0 && sleepers_ > 0) wake_sleeper();
  return error;
}

int EventPoll::control_plain(int operation, int fd, const epoll_event* event) {
  epoll_event tagged{};
  if (event != nullptr) tagged.events = event->events;
  tagged.data.u64 = tag(For::plain, fd);
  if (::epoll_ctl(kernel_.get(), operation, fd, &tagged) != 0) return errno;
  if (operation == EPOLL_CTL_DEL) {
    plain_.erase(fd);
  } else {
    plain_[fd] = event->data;
  }
  return 0;
}

int EventPoll::control_socket(int operation, SocketPtr socket, const epoll_event* event) {
  const int number = socket->descriptor();
  const auto found = watches_.find(number);
  const bool there = found != watches_.end();
  switch (operation) {
    case EPOLL_CTL_ADD: {
      if (there) return EEXIST;
      auto made = std::make_unique<Watch>(*this, std::move(socket));
      made->asked = *event;
      made->socket->watch(*made);
      look_at(*watches_.emplace(number, std::move(made)).first->second);
      return 0;
    }
    case EPOLL_CTL_MOD:
      if (!there) return ENOENT;
      found->second->asked = *event;
      found->second->told = false;
      found->second->news = true;
      look_at(*found->second);
      return 0;
    case EPOLL_CTL_DEL:
      if (!there) return ENOENT;
      drop(found);
      return 0;
    default:
      return EINVAL;
  }
}

void EventPoll::forget(int number) {
  const std::scoped_lock hold(mutex_);
  const auto found = watches_.find(number);
  if (found != watches_.end()) drop(found);
}

void EventPoll::drop(Watches::iterator found) {
  Watch& watch = *found->second;
  watch.socket->unwatch(watch);  // no touch() after it
  for (const int fd : watch.in_kernel) ::epoll_ctl(kernel_.get(), EPOLL_CTL_DEL, fd, nullptr);
  std::erase(by_eye_, &watch);
  {
    const std::scoped_lock hold(touched_mutex_);
    std::erase(touched_, &watch);
  }
  watches_.erase(found);
}

// ---- looking

void EventPoll::look_at(Watch& watch) {
  watch.looks_in_vain = 0;
  if (watch.by_eye || watch.told) return;
  watch.by_eye = true;
  by_eye_.push_back(&watch);
}

void EventPoll::take_touched() {
  const std::scoped_lock hold(touched_mutex_);
  for (Watch* watch : touched_) {
    watch->touched = false;
    look_at(*watch);
  }
  touched_.clear();
}

std::uint32_t EventPoll::ready(Watch& watch) {
  const auto events = static_cast<short>(watch.asked.events & poll_events);
  auto now = static_cast<std::uint32_t>(watch.socket->ready(events));
  if (now == 0 || (watch.asked.events & EPOLLET) == 0) return now;
  // To look is to find changes, so the edge is taken after it, and what it stands for is looked at again.
  return watch.news.exchange(false) ? static_cast<std::uint32_t>(watch.socket->ready(events)) : 0;
}

std::size_t EventPoll::look(std::span<epoll_event> events) {
  take_touched();
  std::size_t count = 0, at = 0;
  while (at < by_eye_.size() && count < events.size()) {
    Watch& watch = *by_eye_[at];
    const std::uint32_t now = ready(watch);
    if (now != 0) {
      events[count++] = {.events = now, .data = watch.asked.data};
      watch.looks_in_vain = 0;
      watch.told = (watch.asked.events & EPOLLONESHOT) != 0;
      watch.by_eye = !watch.told;
    } else if (++watch.looks_in_vain > most_looks_in_vain) {
      arm(watch);
    }
    if (watch.by_eye) {
      ++at;
    } else {
      by_eye_[at] = by_eye_.back();
      by_eye_.pop_back();
    }
  }
  // Where there was no room for all, the others come first next time.
  if (at < by_eye_.size())
    std::rotate(by_eye_.begin(), by_eye_.begin() + static_cast<std::ptrdiff_t>(at), by_eye_.end());
  return count;
}

bool EventPoll::reaches_kernel(Watch& watch) {
  const Socket::Armed armed = watch.socket->arm();
  if (std::exchange(watch.generation, armed.generation) != armed.generation) watch.in_kernel.clear();
  for (const pollfd& one : armed.descriptors) {
    if (std::ranges::find(watch.in_kernel, one.fd) != watch.in_kernel.end()) continue;
    epoll_event event{.events = EPOLLIN, .data = {.u64 = tag(For::socket, watch.socket->descriptor())}};
    if (::epoll_ctl(kernel_.get(), EPOLL_CTL_ADD, one.fd, &event) != 0 && errno != EEXIST) return false;
    watch.in_kernel.push_back(one.fd);
  }
  return true;
}

// It stays watched by eye if it is ready, or cannot be armed.
EventPoll::Armed EventPoll::arm(Watch& watch) {
  watch.looks_in_vain = 0;
  if (!reaches_kernel(watch)) return Armed::cannot_be;
  watch.by_eye = false;
  const auto events = static_cast<short>(watch.asked.events & poll_events);
  const bool edge = (watch.asked.events & EPOLLET) != 0;
  if (watch.socket->ready(events) == 0 || (edge && !watch.news)) return Armed::sleeps;
  watch.by_eye = true;
  return Armed::ready;
}

EventPoll::Armed EventPoll::arm_all() {
  take_touched();
  Armed worst = Armed::sleeps;
  std::erase_if(by_eye_, [&](Watch* watch) {
    const Armed armed = arm(*watch);
    worst = std::max(worst, armed);
    return armed == Armed::sleeps;
  });
  return worst;
}

// ---- waiting

std::size_t EventPoll::sort_out(std::span<const epoll_event> raised, std::span<epoll_event> events) {
  std::size_t count = 0;
  for (const epoll_event& event : raised) {
    switch (what_for(event)) {
      case For::wake: {
        std::uint64_t times;
        [[maybe_unused]] const auto got = ::read(wake_.get(), &times, sizeof times);
        break;
      }
      case For::socket: {
        const auto found = watches_.find(number_of(event));
        if (found == watches_.end()) break;
        found->second->socket->silence();
        look_at(*found->second);
        break;
      }
      case For::plain: {
        const auto found = plain_.find(number_of(event));
        if (found != plain_.end()) events[count++] = {.events = event.events, .data = found->second};
        break;
      }
    }
  }
  return count;
}

Result<std::size_t> EventPoll::ask_kernel(std::unique_lock<std::mutex>& hold, std::span<epoll_event> events,
                                          int timeout_ms) {
  std::array<epoll_event, most_from_kernel> raised;
  waits_since_kernel_ = 0;
  hold.unlock();
  const int count = ::epoll_wait(kernel_.get(), raised.data(),
                                 static_cast<int>(std::min(raised.size(), events.size())), timeout_ms);
  const int error = errno;
  hold.lock();
  if (count < 0) return std::unexpected(error);
  return sort_out(std::span(raised).first(static_cast<std::size_t>(count)), events);
}

// Both kinds, without waiting.
Result<std::size_t> EventPoll::look_everywhere(std::unique_lock<std::mutex>& hold,
                                               std::span<epoll_event> events) {
  if (waits_since_kernel_ < waits_without_kernel) {
    if (const std::size_t count = look(events); count > 0) {
      ++waits_since_kernel_;
      return count;
    }
  }
  const auto plain = ask_kernel(hold, events, 0);
  if (!plain) return plain;
  return *plain + look(events.subspan(*plain));
}

Result<std::size_t> EventPoll::sleep(std::unique_lock<std::mutex>& hold, std::span<epoll_event> events,
                                     int timeout_ms) {
  ++sleepers_;
  const Armed armed = arm_all();
  if (armed == Armed::ready || closed_) timeout_ms = 0;
  if (armed == Armed::cannot_be && (timeout_ms < 0 || timeout_ms > blind_sleep_ms))
    timeout_ms = blind_sleep_ms;
  const auto plain = ask_kernel(hold, events, timeout_ms);
  --sleepers_;
  if (!plain) return plain;
  return *plain + look(events.subspan(*plain));
}

// Nobody looks at what is watched by eye once this thread is gone, unless another one is told to.
void EventPoll::hand_over() {
  if (sleepers_ > 0 && !by_eye_.empty()) wake_sleeper();
}

Result<std::size_t> EventPoll::wait(std::span<epoll_event> events, int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  if (events.empty()) return std::unexpected(EINVAL);
  const auto end =
      timeout_ms > 0 ? Clock::now() + std::chrono::milliseconds(timeout_ms) : Clock::time_point();
  std::unique_lock hold(mutex_);
  auto count = look_everywhere(hold, events);
  if (count == 0U && timeout_ms != 0 && !by_eye_.empty()) {
    const std::size_t tries = std::max<std::size_t>(looks_between_yields / by_eye_.size(), 1);
    (void)try_a_while(
        [&] {
          hold.unlock();
          hold.lock();
          return (*count = look(events)) > 0;
        },
        static_cast<int>(tries));
  }
  while (count == 0U && timeout_ms != 0) {
    if (timeout_ms > 0) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
      if (left <= 0) break;
      timeout_ms = static_cast<int>(left);
    }
    if (closed_) return std::unexpected(EBADF);
    count = sleep(hold, events, timeout_ms);
  }
  hand_over();
  return count;
}

}  // namespace weir::rsocket

#include "rpc/transport/poller.hpp"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "waiting/turn.hpp"

namespace weir::rpc {

asio::execution_context::id Poller::id;

namespace {
using Time = waiting::PollPolicy::TimePoint::clock;

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
      set_(make_epoll()),
      watched_set_(io),
      scratch_(std::make_unique_for_overwrite<std::byte[]>(scratch_bytes)),
      places_(std::make_unique_for_overwrite<std::byte[]>(longest_row * place_stride)),
      staging_(std::make_unique_for_overwrite<std::byte[]>(most_staged)) {
  asked_.reserve(longest_row);
  staged_.reserve(longest_row);
}

void Poller::shutdown() {
  let_asio_watch(false);
  close(std::exchange(set_, -1));
  forget_asked();
}

bool Poller::add(int fd, Watcher& watcher, std::uint32_t events) {
  // remove() must not throw, so reserve its memory now. A round may remove one watcher for each added.
  if (const std::size_t most = removed_.size() + watched_ + 1; removed_.capacity() < most)
    removed_.reserve(2 * most);
  epoll_event event{events, {.ptr = &watcher}};
  if (epoll_ctl(set_, EPOLL_CTL_ADD, fd, &event) != 0) return false;
  watcher.fd_ = fd;
  watcher.watched_ = true;
  if (watched_++ == 0 && !waiting_ && !in_round_) sleep();
  return true;
}

void Poller::change(int fd, Watcher& watcher, std::uint32_t events) {
  epoll_event event{events, {.ptr = &watcher}};
  epoll_ctl(set_, EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd, Watcher& watcher) {
  send_now(watcher);
  if (!std::exchange(watcher.watched_, false)) return;
  if (set_ >= 0) epoll_ctl(set_, EPOLL_CTL_DEL, fd, nullptr);
  if (in_round_) removed_.push_back(&watcher);
  if (--watched_ == 0 && watched_set_.is_open()) watched_set_.cancel();  // let run() return
}

// False: out of memory or kernel descriptors.
bool Poller::let_asio_watch(bool on) {
  if (on == watched_set_.is_open()) return true;
  if (!on) {
    watched_set_.release();
    return true;
  }
  try {
    std::error_code error;
    watched_set_.assign(set_, error);
    return !error;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Poller::sleep() {
  if (!let_asio_watch(true)) return go_on();
  waiting_ = true;
  watched_set_.async_wait(asio::posix::stream_descriptor::wait_read,
                          for_wait_.serve([this](const std::error_code& error) {
                            waiting_ = false;
                            if (!error) return rounds();
                            // Cancelled because no sockets were left, but there is one again.
                            if (watched_ > 0 && watched_set_.is_open()) sleep();
                          }));
}

// Posted, so that whatever else is ready runs between two looks.
void Poller::go_on() {
  waiting_ = true;
  let_asio_watch(false);
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
  const waiting::Turn turn;
  bool progress = false;
  try {
    for (int i = 0; i < most_rounds && !(progress && turn.over()) && round(); ++i) progress = true;
  } catch (...) {  // leaves io_context::run(); the next run() must continue
    if (watched_ == 0)
      forget_asked();
    else
      asked_.empty() ? sleep() : go_on();
    throw;
  }
  if (watched_ == 0) return;
  policy_.after_round(Time::now(), progress) == waiting::PollPolicy::Next::yield ? go_on() : sleep();
}

bool Poller::round() {
  in_round_ = true;
  const AtExit round_over{[this] {
    in_round_ = false;
    removed_.clear();
  }};
  deliver();  // deliver what an exception interrupted
  const int count = epoll_wait(set_, events_.data(), static_cast<int>(events_.size()), 0);
  std::span<const epoll_event> ready(events_.data(), static_cast<std::size_t>(std::max(count, 0)));
  while (!ready.empty()) {
    const std::size_t row = std::min(ready.size(), longest_row);
    ask(ready.first(row));
    receive();
    deliver();
    ready = ready.subspan(row);
  }
  return count > 0;
}

void Poller::ask(std::span<const epoll_event> ready) {
  std::byte* place = places_.get();
  for (const epoll_event& event : ready) {
    auto* watcher = static_cast<Watcher*>(event.data.ptr);
    if (!removed_.empty() && std::ranges::find(removed_, watcher) != removed_.end()) continue;
    Asked& asked = asked_.emplace_back(watcher->shared_from_this(), event.events);
    if (event.events != EPOLLIN || !watcher->expects_little()) continue;
    asked.place = {place, little};
    place += place_stride;
  }
}

void Poller::receive() {
  for (Asked& asked : asked_) {
    if (asked.place.empty() || !asked.watcher->watched_) continue;
    asked.got = ::recv(asked.watcher->fd_, asked.place.data(), asked.place.size(), MSG_DONTWAIT);
    asked.error = errno;
  }
}

// Delivers the events, and ends the rounds of the watchers that got theirs.
void Poller::deliver() {
  auto since = asked_.size() > 1 ? Time::now() : Time::time_point();  // a single watcher delays nobody
  while (delivered_ < asked_.size()) {
    Asked& asked = asked_[delivered_++];
    if (!asked.watcher->watched_) continue;
    if (asked.place.empty())
      asked.watcher->ready(asked.events);
    else
      asked.watcher->received(asked.place, asked.got, asked.error);
    if (delivered_ == asked_.size()) break;
    if (const auto now = Time::now(); now - since >= most_held_) {
      end_rounds();
      since = now;
    }
  }
  end_rounds();
  forget_asked();
}

void Poller::forget_asked() {
  asked_.clear();
  delivered_ = ended_ = 0;
}

// Ends rounds in the order of the events. A watcher whose round_ended() throws counts as told.
void Poller::end_rounds() {
  several_end_ = delivered_ - ended_ > 1;
  const AtExit all_told{[this] {
    several_end_ = false;
    send_staged();
  }};
  while (ended_ < delivered_) {
    Watcher& watcher = *asked_[ended_++].watcher;
    if (watcher.watched_) watcher.round_ended();
  }
}

bool Poller::send_soon(Watcher& watcher, std::span<const std::byte> bytes) {
  if (!several_end_ || watcher.staged_ || bytes.size() > most_staged - staging_used_ ||
      staged_.size() == longest_row)
    return false;
  std::byte* place = staging_.get() + staging_used_;
  std::memcpy(place, bytes.data(), bytes.size());
  staging_used_ += bytes.size();
  staged_.push_back({&watcher, {place, bytes.size()}});
  watcher.staged_ = true;
  return true;
}

void Poller::send_staged() {
  if (staged_.empty()) return;
  for (Staged& staged : staged_) {
    const ssize_t sent =
        ::send(staged.watcher->fd_, staged.bytes.data(), staged.bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    staged.sent = sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }
  for (const Staged& staged : staged_) {
    staged.watcher->staged_ = false;
    if (staged.sent < staged.bytes.size()) staged.watcher->unsent(staged.bytes.subspan(staged.sent));
  }
  staged_.clear();
  staging_used_ = 0;
}

}  // namespace weir::rpc

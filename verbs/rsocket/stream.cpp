// A connected stream: sending, receiving, its end, and what can be asked of it.
#include "verbs/rsocket/stream.hpp"

#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::rsocket {
namespace {
// How long close() waits for the peer to take what was sent. It takes it unless it is stopped.
constexpr int default_linger_ms = 5000;
constexpr int most_linger_s = 60;
}  // namespace

void Stream::progress() {
  if (pipe_ == nullptr || phase_ != Phase::connected) return;
  if (pipe_->progress() && !watchers_.empty()) watchers_.wake_all();
  // The receives of a queue pair that lost its peer come back flushed.
  if (pipe_->broken() && !lost_) advance();
}

bool Stream::at_end() const { return !reading_ || pipe_->peer_shut_down() || pipe_->broken() || lost_; }

bool Stream::can_read() const { return pipe_->unread() > 0 || at_end(); }

int Stream::send_error() const {
  if (!writing_) return EPIPE;
  if (pipe_->peer_disconnected() || pipe_->broken() || lost_) return ECONNRESET;
  return 0;
}

int Stream::locked_wait_room(std::unique_lock<std::mutex>& hold, int flags, bool (Stream::*room)()) {
  const auto done = [&] {
    progress();
    return closed_ || send_error() != 0 || (this->*room)();
  };
  if (!done()) {
    if (!locked_blocks(flags)) return EAGAIN;
    if (const int error = locked_wait(hold, done); error != 0) return error;
  }
  return closed_ ? EBADF : send_error();
}

int Stream::locked_announce(std::unique_lock<std::mutex>& hold, int flags) {
  while (pipe_->announcement_due()) {
    if (const int error = locked_wait_room(hold, flags, &Stream::can_announce); error != 0) return error;
  }
  return 0;
}

Result<std::size_t> Stream::send(Pieces from, int flags, const sockaddr*, socklen_t) {
  std::unique_lock hold(mutex_);
  if (in_progress()) advance();
  if (in_progress()) return std::unexpected(EAGAIN);
  if (phase_ != Phase::connected) return std::unexpected(phase_ == Phase::failed ? EPIPE : ENOTCONN);
  const std::size_t all = from.left();
  int error = locked_announce(hold, flags);
  while (error == 0 && from.left() > 0) {
    error = locked_wait_room(hold, flags, &Stream::has_room);
    if (error == 0) pipe_->send(from);
  }
  if (from.left() < all || all == 0) return all - from.left();
  return std::unexpected(error);
}

Result<std::size_t> Stream::receive(Pieces into, int flags, sockaddr_storage*) {
  std::unique_lock hold(mutex_);
  if (in_progress()) advance();
  if (in_progress()) return std::unexpected(EAGAIN);
  if (phase_ != Phase::connected) return std::unexpected(ENOTCONN);
  if (into.left() == 0) return 0;
  const bool peek = (flags & MSG_PEEK) != 0;
  const auto done = [&] {
    progress();
    return closed_ || can_read();
  };
  std::size_t got = 0;
  do {
    if (!done()) {
      if (!locked_blocks(flags)) return got > 0 ? Result<std::size_t>(got) : std::unexpected(EAGAIN);
      if (const int error = locked_wait(hold, done); error != 0)
        return got > 0 ? Result<std::size_t>(got) : std::unexpected(error);
    }
    if (closed_) return std::unexpected(EBADF);
    const std::size_t part = reading_ ? pipe_->read(into, peek) : 0;
    if (part == 0) {  // the end; a connection that broke says so once, as a socket does
      const bool reset = reading_ && !pipe_->peer_shut_down() && !reset_reported_ && got == 0;
      if (!reset) return got;
      reset_reported_ = !peek;
      return std::unexpected(ECONNRESET);
    }
    got += part;
  } while ((flags & MSG_WAITALL) != 0 && !peek && into.left() > 0);
  return got;
}

Result<std::size_t> Stream::write_mapped(Pieces from, std::uint64_t offset, int flags) {
  std::unique_lock hold(mutex_);
  if (phase_ != Phase::connected) return std::unexpected(ENOTCONN);
  const std::size_t all = from.left();
  int error = locked_announce(hold, flags);
  while (error == 0 && from.left() > 0) {
    progress();
    if ((error = closed_ ? EBADF : send_error()) != 0) break;
    const auto part = pipe_->send_to_mapping(from, offset);
    if (!part) {
      error = part.error();
    } else if (*part > 0) {
      offset += *part;
    } else if (!locked_blocks(flags)) {
      error = EAGAIN;
    } else {  // the ring is full: until all of it is at the peer
      error = locked_wait(hold, [&] {
        progress();
        return closed_ || send_error() != 0 || pipe_->all_sent();
      });
    }
  }
  if (from.left() < all || all == 0) return all - from.left();
  return std::unexpected(error);
}

Result<std::uint64_t> Stream::map(void* buffer, std::size_t size, int protection, std::int64_t offset) {
  const std::scoped_lock hold(mutex_);
  if (phase_ != Phase::connected) return std::unexpected(EINVAL);
  return pipe_->map(buffer, size, protection, offset);
}

int Stream::unmap(void* buffer, std::size_t size) {
  const std::scoped_lock hold(mutex_);
  return pipe_ != nullptr ? pipe_->unmap(buffer, size) : EINVAL;
}

int Stream::shut_down(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return EINVAL;
  std::unique_lock hold(mutex_);
  if (phase_ != Phase::connected) return ENOTCONN;
  return locked_shut_down(hold, how);
}

int Stream::locked_shut_down(std::unique_lock<std::mutex>& hold, int how) {
  const bool was_writing = writing_;
  if (how != SHUT_WR) reading_ = false;
  if (how != SHUT_RD) writing_ = false;
  watchers_.wake_all();
  progress();
  const bool all_over = !reading_ && !writing_;
  const bool says_something = all_over ? !peer_notified_ : was_writing && !writing_;
  if (!says_something || pipe_->broken() || pipe_->peer_disconnected() || lost_) return 0;
  const Control what = all_over ? Control::disconnect : Control::shutdown;
  const int linger_ms = options_.lingering.l_onoff == 0
                            ? default_linger_ms
                            : 1000 * std::min(options_.lingering.l_linger, most_linger_s);
  const auto over = [&] { return pipe_->broken() || lost_; };
  bool said = false;
  const auto say = [&] {
    progress();
    said = said || pipe_->send_control(what);
    return said || over();
  };
  if (const int error = locked_wait_for(hold, linger_ms, say); error != 0) return error;
  peer_notified_ = peer_notified_ || (said && all_over);
  const auto taken = [&] {
    progress();
    return pipe_->all_sent() || over();
  };
  // What was sent is the peer's once it is complete; the process may end then.
  (void)locked_wait_for(hold, linger_ms, taken);
  return 0;
}

void Stream::close() {
  {
    std::unique_lock hold(mutex_);
    closed_ = true;
    watchers_.wake_all();
    if (phase_ == Phase::connected) (void)locked_shut_down(hold, SHUT_RDWR);
  }
  if (listener_) listener_->stop();
}

Stream::Leaving Stream::leave() {
  std::unique_lock hold(mutex_, std::try_to_lock);
  if (!hold) return Leaving::in_use;
  if (phase_ != Phase::connected) return Leaving::over;
  progress();
  if (pipe_->broken() || lost_) return Leaving::over;
  peer_notified_ = peer_notified_ || pipe_->send_control(Control::disconnect);
  return peer_notified_ && pipe_->all_sent() ? Leaving::over : Leaving::under_way;
}

short Stream::locked_ready(short events) {
  if (phase_ == Phase::listening)
    return ready_.empty() ? 0 : static_cast<short>(events & (POLLIN | POLLRDNORM));
  if (in_progress()) advance();
  if (in_progress()) return 0;
  constexpr short in = POLLIN | POLLRDNORM, out = POLLOUT | POLLWRNORM;
  if (phase_ != Phase::connected) {  // as poll(2) of a socket that is not connected
    const short always = phase_ == Phase::failed ? POLLERR | POLLHUP : POLLHUP;
    return static_cast<short>((events & (in | out)) | always);
  }
  progress();
  short ready = 0;
  if (can_read()) ready = static_cast<short>(ready | (events & in));
  if (send_error() != 0 || has_room()) ready = static_cast<short>(ready | (events & out));
  if (at_end()) ready = static_cast<short>(ready | (events & POLLRDHUP));
  const bool reset = (pipe_->broken() || lost_) && !pipe_->peer_shut_down();
  if (reset) ready = static_cast<short>(ready | POLLERR);
  // Programs take it for the end of everything; it is not while there is something to read.
  const bool over = pipe_->unread() == 0 && (pipe_->peer_disconnected() || (at_end() && !writing_));
  if (reset || over) ready = static_cast<short>(ready | POLLHUP);
  return ready;
}

void Stream::locked_prepare_sleep(std::vector<pollfd>& others) {
  if (phase_ == Phase::listening) return;  // accepted() wakes
  advance();
  others.push_back({.fd = channel_->fd, .events = POLLIN, .revents = 0});
  if (phase_ != Phase::connected) return;
  if (pipe_->set_alarm()) watchers_.wake_all();
  others.push_back({.fd = pipe_->descriptor(), .events = POLLIN, .revents = 0});
}

void Stream::locked_silence() {
  if (phase_ == Phase::listening) return;
  advance();
  if (phase_ == Phase::connected && pipe_->silence()) watchers_.wake_all();
}

int Stream::set_option(int level, int name, const void* value, socklen_t size) {
  const std::scoped_lock hold(mutex_);
  const bool fixed = phase_ != Phase::fresh && phase_ != Phase::bound && phase_ != Phase::listening;
  if (const int error = options_.set(level, name, value, size, fixed); error != 0) return error;
  const bool reuse = level == SOL_SOCKET && name == SO_REUSEADDR;
  const bool v6_only = level == IPPROTO_IPV6 && name == IPV6_V6ONLY;
  if (phase_ != Phase::fresh || (!reuse && !v6_only)) return 0;
  int on = reuse ? options_.reuse_address : options_.v6_only;
  const int option = reuse ? RDMA_OPTION_ID_REUSEADDR : RDMA_OPTION_ID_AFONLY;
  return rdma_set_option(id_.get(), RDMA_OPTION_ID, option, &on, sizeof on) == 0 ? 0 : errno;
}

int Stream::get_option(int level, int name, void* value, socklen_t* size) {
  const std::scoped_lock hold(mutex_);
  if (level == SOL_SOCKET &&
      (name == SO_ERROR || name == SO_TYPE || name == SO_ACCEPTCONN || name == SO_DOMAIN)) {
    if (value == nullptr || size == nullptr || *size < sizeof(int)) return EINVAL;
    int answer = 0;
    if (name == SO_TYPE) answer = SOCK_STREAM;
    if (name == SO_DOMAIN) answer = family_;
    if (name == SO_ACCEPTCONN) answer = phase_ == Phase::listening;
    if (name == SO_ERROR) {
      if (in_progress()) advance();
      answer = std::exchange(error_, 0);
    }
    std::memcpy(value, &answer, sizeof answer);
    *size = sizeof answer;
    return 0;
  }
  return options_.get(level, name, value, size);
}

}  // namespace weir::rsocket

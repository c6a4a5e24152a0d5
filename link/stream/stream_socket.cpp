#include "link/stream/stream_socket.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

namespace weir::link {
namespace {

constexpr std::size_t runs_at_once = 32;  // per sendmsg

// Bytes taken, at least 0; nullopt: the connection has ended.
std::optional<std::size_t> send_pieces(int socket, std::span<iovec> pieces) {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  for (;;) {
    const ssize_t taken = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken >= 0) return static_cast<std::size_t>(taken);
    if (errno == EAGAIN || errno == ENOTCONN) return 0;
    if (errno != EINTR) return std::nullopt;
  }
}

}  // namespace

bool StreamSocket::watch() {
  const std::lock_guard lock(mutex_);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLOUT;
  event.data.u64 = key_;
  wants_to_send_ = true;  // until flush(): a connection may be on its way
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_.get(), &event) == 0;
}

UniqueFd StreamSocket::release() {
  const std::lock_guard lock(mutex_);
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket_.get(), nullptr);
  return std::move(socket_);
}

void StreamSocket::shut_down() { ::shutdown(socket_.get(), SHUT_RDWR); }

void StreamSocket::want_to_send(bool wanted) {
  if (std::exchange(wants_to_send_, wanted) == wanted) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  if (wanted) event.events |= EPOLLOUT;
  event.data.u64 = key_;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket_.get(), &event);
}

bool StreamSocket::send(std::span<const StreamedRun> runs) {
  const std::lock_guard lock(mutex_);
  bool all = true;
  while (!runs.empty()) {
    const auto some = runs.first(std::min(runs.size(), runs_at_once));
    runs = runs.subspan(some.size());
    if (!met_ || !queue_.empty()) {
      all = queue(some, 0) && all;
      continue;
    }
    std::array<std::array<std::byte, frame_header_bytes>, runs_at_once> headers;
    std::array<iovec, 2 * runs_at_once> pieces;
    for (std::size_t i = 0; i < some.size(); ++i) {
      headers[i] = encode_run_frame(some[i]);
      pieces[2 * i] = {headers[i].data(), headers[i].size()};
      pieces[2 * i + 1] = {const_cast<std::byte*>(some[i].bytes.data()), some[i].bytes.size()};
    }
    const auto taken = send_pieces(socket_.get(), std::span(pieces).first(2 * some.size()));
    if (!taken) return false;
    all = queue(some, *taken) && all;
  }
  return all;
}

// A run that the kernel took a part of is kept whole, whatever the queue's limit: its frame has begun.
bool StreamSocket::queue(std::span<const StreamedRun> runs, std::size_t already_sent) {
  bool all = true;
  for (const StreamedRun& run : runs) {
    const std::size_t bytes = frame_header_bytes + run.bytes.size();
    const std::size_t gone = std::min(already_sent, bytes);
    already_sent -= gone;
    if (gone == bytes) continue;
    if (gone == 0 && queue_.size() - sent_ + bytes > max_queued_bytes) {
      all = false;
      continue;
    }
    const auto header = encode_run_frame(run);
    const std::size_t of_header = std::min(gone, header.size());
    queue_.insert(queue_.end(), header.begin() + static_cast<std::ptrdiff_t>(of_header), header.end());
    queue_.insert(queue_.end(), run.bytes.begin() + static_cast<std::ptrdiff_t>(gone - of_header),
                  run.bytes.end());
  }
  if (met_ && !queue_.empty()) want_to_send(true);
  return all;
}

bool StreamSocket::send_frame(std::span<const std::byte> frame) {
  const std::lock_guard lock(mutex_);
  if (!met_ || queue_.size() - sent_ + frame.size() > max_queued_bytes) return false;
  queue_.insert(queue_.end(), frame.begin(), frame.end());
  flush_some();
  return true;
}

bool StreamSocket::send_greeting(std::span<const std::byte> frame) {
  const std::lock_guard lock(mutex_);
  return ::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(frame.size());
}

void StreamSocket::begin_runs() {
  const std::lock_guard lock(mutex_);
  met_ = true;
  flush_some();
}

void StreamSocket::flush() {
  const std::lock_guard lock(mutex_);
  if (met_)
    flush_some();
  else
    want_to_send(false);
}

void StreamSocket::flush_some() {
  while (sent_ < queue_.size()) {
    iovec rest{queue_.data() + sent_, queue_.size() - sent_};
    const auto taken = send_pieces(socket_.get(), {&rest, 1});
    if (!taken || *taken == 0) break;
    sent_ += *taken;
  }
  if (sent_ == queue_.size() || sent_ > max_queued_bytes) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(sent_));
    sent_ = 0;
  }
  want_to_send(!queue_.empty());
}

bool StreamSocket::has_queued() const {
  const std::lock_guard lock(mutex_);
  return met_ && !queue_.empty();
}

bool StreamSocket::wait_to_send(std::chrono::milliseconds limit) const {
  pollfd state{socket_.get(), POLLOUT, 0};
  return ::poll(&state, 1, static_cast<int>(limit.count())) == 1;
}

void StreamSocket::end_sending() { ::shutdown(socket_.get(), SHUT_WR); }

ssize_t StreamSocket::receive(std::span<std::byte> room) {
  return ::recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
}

}  // namespace weir::link

#include "kv/net/socket_connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "waiting/turn.hpp"

namespace weir::kv {

SocketConnection::SocketConnection(SocketPoller& poller, OwnedFd fd, SocketNames names)
    : poller_(poller), fd_(std::move(fd)), names_(std::move(names)) {}

void SocketConnection::start(Session& session) {
  session_ = &session;
  poller_.add(fd_.get(), *this, EPOLLIN);
}

void SocketConnection::close() {
  if (!fd_) return;
  if (session_ != nullptr) poller_.remove(fd_.get());
  session_ = nullptr;
  fd_.close();
}

void SocketConnection::ready(std::uint32_t events) {
  // The poller reports a vanished peer whatever events it watches.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0 && (watched_ & EPOLLIN) == 0) return lose(0);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && fd_) read();
  if ((events & EPOLLOUT) != 0 && fd_) flush();
}

void SocketConnection::read() {
  // When the turn is over, the level-triggered poller will report the rest again.
  constexpr int most_reads = 16;
  const waiting::Turn turn;
  for (int i = 0; i < most_reads && session_ != nullptr; ++i) {
    if (i > 0 && turn.over()) return;
    const std::size_t most = session_->appetite();
    if (most == 0) return watch((watched_ & EPOLLOUT) != 0);
    const std::span<char> wanted = session_->wanted();
    const std::span<char> free = wanted.empty() ? poller_.scratch() : wanted;
    const std::span<char> place = free.first(std::min(most, free.size()));
    const ssize_t n = ::recv(fd_.get(), place.data(), place.size(), 0);
    if (n == 0) {
      flush();  // the peer may have shut down only its sending side
      if (session_ == nullptr || !session_->peer_ended()) return lose(0);
      peer_ended_ = true;
      return watch((watched_ & EPOLLOUT) != 0);
    }
    if (n < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      return lose(errno);
    }
    const auto size = static_cast<std::size_t>(n);
    if (wanted.empty()) {
      session_->received(place.first(size));
    } else {
      session_->filled(size);
    }
    if (size < place.size()) return;
  }
}

void SocketConnection::flush() {
  if (session_ == nullptr) return;
  ReplyQueue& queue = session_->outgoing();
  if (session_ == nullptr) return;
  constexpr std::size_t most_pieces = 64;
  std::array<iovec, most_pieces> pieces;
  while (!queue.empty()) {
    const std::size_t count = queue.gather(pieces.data(), pieces.size());
    ssize_t n;
    if (count == 1) {
      n = ::send(fd_.get(), pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      msghdr message{};
      message.msg_iov = pieces.data();
      message.msg_iovlen = count;
      n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return watch(true);
      return lose(errno);
    }
    queue.consume(static_cast<std::size_t>(n));
  }
  session_->drained();
  if (session_ != nullptr) watch(false);
}

void SocketConnection::watch(bool for_room) {
  const bool reads = !peer_ended_ && session_->appetite() > 0;
  const std::uint32_t wanted = (reads ? EPOLLIN : 0u) | (for_room ? EPOLLOUT : 0u);
  if (wanted == watched_) return;
  watched_ = wanted;
  poller_.change(fd_.get(), *this, wanted);
}

void SocketConnection::lose(int error) {
  Session* session = session_;
  close();
  if (session != nullptr) session->lost(error == 0 ? "closed by the peer" : std::strerror(error));
}

}  // namespace weir::kv

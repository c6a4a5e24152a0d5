#include "kv/net/socket_connection.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

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
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && fd_) read();
  if ((events & EPOLLOUT) != 0 && fd_) flush();
}

void SocketConnection::read() {
  constexpr int most_reads = 16;  // then it is the others' turn; the level-triggered poller reminds us
  for (int i = 0; i < most_reads && session_ != nullptr; ++i) {
    const std::span<char> wanted = session_->wanted();
    const std::span<char> place = wanted.empty() ? poller_.scratch() : wanted;
    const ssize_t n = ::recv(fd_.get(), place.data(), place.size(), 0);
    if (n == 0) {
      flush();  // the peer may have ended its side only
      return lose(0);
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
      if (errno == EAGAIN) return wait_for_room(true);
      return lose(errno);
    }
    queue.consume(static_cast<std::size_t>(n));
  }
  wait_for_room(false);
  session_->drained();
}

void SocketConnection::wait_for_room(bool wanted) {
  if (wanted == waits_for_room_) return;
  waits_for_room_ = wanted;
  poller_.change(fd_.get(), *this, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void SocketConnection::lose(int error) {
  Session* session = session_;
  close();
  if (session != nullptr) session->lost(error == 0 ? "closed by the peer" : std::strerror(error));
}

}  // namespace weir::kv

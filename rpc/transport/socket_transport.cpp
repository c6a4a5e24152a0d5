#include "rpc/transport/socket_transport.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::rpc {

namespace {

class SocketTransport final : public Transport, public Poller::Watcher {
 public:
  SocketTransport(asio::io_context& io, OwnedFd fd, std::string peer)
      : poller_(Poller::of(io)), fd_(std::move(fd)), peer_(std::move(peer)) {}
  ~SocketTransport() override { SocketTransport::close(); }

  void start(TransportUser& user) override {
    user_ = &user;
    const int on = 1;
    setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on,
               sizeof on);  // fails on a unix socket, which has no delay
    if (!poller_.add(fd_.get(), *this, events())) lose("epoll_ctl", errno);
  }

  std::size_t write(std::span<const asio::const_buffer> pieces) override {
    if (pieces.size() == 1 && tail_.empty() && poller_.send_soon(*this, bytes_of(pieces[0])))
      return pieces[0].size();
    poller_.send_now(*this);
    if (!tail_.empty()) return 0;
    std::array<iovec, 64> vectors;
    const std::size_t count = std::min(pieces.size(), vectors.size());
    std::size_t offered = 0;
    for (std::size_t i = 0; i < count; ++i) {
      vectors[i] = {const_cast<void*>(pieces[i].data()), pieces[i].size()};
      offered += pieces[i].size();
    }
    const ssize_t sent = send_pieces(std::span(vectors).first(count));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      // Reported from the poller, not from within a write: the socket is readable now, and
      // reading tells what happened.
      return 0;
    }
    const std::size_t taken = sent < 0 ? 0 : static_cast<std::size_t>(sent);
    if (taken < offered) wait_for_room();
    return taken;
  }

  void read_on(bool on) override {
    reading_ = on;
    if (fd_) poller_.change(fd_.get(), *this, events());
  }

  bool end_output() override {
    poller_.send_now(*this);
    output_ends_ = true;
    if (tail_.empty()) shutdown(fd_.get(), SHUT_WR);
    return false;
  }

  void close() override {
    user_ = nullptr;
    if (!fd_) return;
    poller_.remove(fd_.get(), *this);
    fd_.close();
  }

  std::string peer() const override { return peer_; }

 private:
  // Beyond this, a socket that always has more gives way to the others.
  static constexpr std::size_t most_in_a_row = 1 << 20;
  // Input beyond a large piece that the user wants in place is read to a separate buffer: the start of what
  // follows, which the user may then want in place, too.
  static constexpr std::size_t look_ahead_bytes = 4 << 10;

  std::uint32_t events() const {
    return (reading_ && !input_ended_ ? EPOLLIN : 0u) | (full_ ? EPOLLOUT : 0u);
  }

  bool expects_little() override {
    return got_little_ && reading_ && user_ != nullptr && user_->wanted().empty();
  }

  void received(std::span<const std::byte> place, ssize_t got, int error) override {
    if (user_ != nullptr && took(got, error, {}, place, false)) read(false);
  }

  void ready(std::uint32_t what) override {
    if ((what & EPOLLOUT) != 0 && full_ && send_tail()) {
      full_ = false;
      poller_.change(fd_.get(), *this, events());
      if (user_ != nullptr) user_->writable();
    }
    // Report a vanished peer whether we read or not; what it sent before is read then, too.
    const bool gone = (what & (EPOLLHUP | EPOLLERR)) != 0;
    if ((gone || (what & EPOLLIN) != 0) && user_ != nullptr) read(gone);
  }

  void unsent(std::span<const std::byte> rest) override {
    try {
      tail_.append(rest);
      wait_for_room();
    } catch (const std::bad_alloc&) {  // the stream has a hole: reading reports its end
      shutdown(fd_.get(), SHUT_RDWR);
    }
  }

  void round_ended() override {
    if (user_ != nullptr) user_->round_ended();
  }

  static std::span<const std::byte> bytes_of(const asio::const_buffer& piece) {
    return {static_cast<const std::byte*>(piece.data()), piece.size()};
  }

  void wait_for_room() {
    if (!std::exchange(full_, true)) poller_.change(fd_.get(), *this, events());
  }

  // True: the tail has been sent, and there may be room for more.
  bool send_tail() {
    if (tail_.empty()) return true;
    const ssize_t sent = ::send(fd_.get(), tail_.data(), tail_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) tail_.erase_front(static_cast<std::size_t>(sent));
    if (!tail_.empty()) return false;
    if (output_ends_) shutdown(fd_.get(), SHUT_WR);
    return true;
  }

  // A single piece goes without a msghdr: copying that into the kernel is a twentieth of a small call's cost.
  ssize_t send_pieces(std::span<iovec> pieces) const {
    constexpr int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    if (pieces.size() == 1) return ::send(fd_.get(), pieces[0].iov_base, pieces[0].iov_len, flags);
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    return ::sendmsg(fd_.get(), &message, flags);
  }
  ssize_t receive_into(std::span<std::byte> wanted, std::span<std::byte> rest) const {
    if (wanted.empty()) return ::recv(fd_.get(), rest.data(), rest.size(), MSG_DONTWAIT);
    iovec places[] = {{wanted.data(), wanted.size()}, {rest.data(), rest.size()}};
    msghdr message{};
    message.msg_iov = places;
    message.msg_iovlen = std::size(places);
    return ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  }

  void read(bool to_the_end) {
    for (std::size_t total = 0; user_ != nullptr && (reading_ || to_the_end) && total < most_in_a_row;) {
      const std::span<std::byte> wanted = user_->wanted();
      const std::span<std::byte> rest =
          poller_.scratch().first(is_much(wanted) ? look_ahead_bytes : scratch_bytes_);
      const ssize_t got = receive_into(wanted, rest);
      if (!took(got, errno, wanted, rest, to_the_end)) return;
      total += static_cast<std::size_t>(got);
    }
  }
  static bool is_much(std::span<std::byte> wanted) { return wanted.size() >= large_piece_bytes; }

  // Handles the result of a receive into `wanted`, then into `rest`. True: there may be more.
  bool took(ssize_t got, int error, std::span<std::byte> wanted, std::span<const std::byte> rest,
            bool to_the_end) {
    if (got < 0 && (error == EAGAIN || error == EINTR)) return false;
    // If nobody can write to the peer any more, read to the end.
    if (got == 0 && !to_the_end && user_->writes_on()) {
      input_ended_ = true;
      poller_.change(fd_.get(), *this, events());
      return false;
    }
    if (got <= 0) {
      lose("the connection", got == 0 ? 0 : error);
      return false;
    }
    const auto bytes = static_cast<std::size_t>(got);
    const std::size_t in_place = std::min(bytes, wanted.size());
    // After a large piece another large one may follow.
    scratch_bytes_ = is_much(wanted) ? look_ahead_bytes : std::min(scratch_bytes_ * 8, Poller::scratch_bytes);
    got_little_ = bytes < Poller::little;
    if (in_place > 0) user_->filled(in_place);
    if (bytes > in_place && user_ != nullptr) user_->received(rest.first(bytes - in_place));
    return bytes == wanted.size() + rest.size();
  }

  void lose(const char* what, int os_error) {
    TransportUser* user = user_;
    const std::string peer = peer_;
    close();
    if (user == nullptr) return;
    user->ended({Errc::connection_lost, os_error == 0 ? peer + " closed the connection"
                                                      : peer + ": " + what + ": " + std::strerror(os_error)});
  }

  Poller& poller_;
  OwnedFd fd_;
  const std::string peer_;
  TransportUser* user_ = nullptr;
  bool reading_ = true;
  bool input_ended_ = false;  // the peer ended it, but may still read
  bool full_ = false;
  bool output_ends_ = false;                           // once the tail is sent
  Bytes tail_;                                         // what the socket did not take of the poller's send
  bool got_little_ = true;                             // at the last read
  std::size_t scratch_bytes_ = Poller::scratch_bytes;  // of the poller's scratch memory
};

}  // namespace

TransportPtr make_socket_transport(asio::io_context& io, OwnedFd fd, std::string peer) {
  return std::make_shared<SocketTransport>(io, std::move(fd), std::move(peer));
}

}  // namespace weir::rpc

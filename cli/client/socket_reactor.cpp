#include "cli/client/socket_reactor.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "cli/client/socket_dial.hpp"

namespace weir::client {
namespace {

// One buffer for all connections, because received bytes are handled at once.
constexpr std::size_t receive_bytes = 256 * 1024;

// Accurate to the nanosecond if the kernel can (Linux 5.11), otherwise to the next millisecond.
int wait(int epoll, std::span<epoll_event> ready, std::chrono::nanoseconds limit) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(limit);
  const timespec exactly{seconds.count(), (limit - seconds).count()};
  const int count = ::epoll_pwait2(epoll, ready.data(), static_cast<int>(ready.size()), &exactly, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
  return ::epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()),
                      static_cast<int>(std::chrono::ceil<Milliseconds>(limit).count()));
}

class SocketConnection;

class SocketReactor final : public Reactor {
 public:
  explicit SocketReactor(OwnedFd epoll) : epoll_(std::move(epoll)), received_(receive_bytes) {}

  Result<std::unique_ptr<Connection>> open(const Endpoint&, ConnectionEvents&, Milliseconds limit) override;
  void turn(std::chrono::nanoseconds limit) override;

  void watch(SocketConnection&, int fd, int operation, std::uint32_t events);
  void forget(SocketConnection&, int fd);
  std::span<std::byte> receive_buffer() { return received_; }

 private:
  OwnedFd epoll_;
  std::vector<std::byte> received_;
  std::array<epoll_event, 256> ready_{};
  int ready_count_ = 0;
};

class SocketConnection final : public Connection {
 public:
  SocketConnection(SocketReactor& reactor, OwnedFd fd, ConnectionEvents& events)
      : reactor_(reactor), fd_(std::move(fd)), events_(events) {
    reactor_.watch(*this, fd_.get(), EPOLL_CTL_ADD, EPOLLIN);
  }
  ~SocketConnection() override {
    if (fd_) reactor_.forget(*this, fd_.get());
  }

  std::size_t write(std::span<const std::byte> bytes, const std::shared_ptr<const void>&) override {
    std::size_t taken = 0;
    while (fd_ && taken < bytes.size()) {
      const auto sent = ::send(fd_.get(), bytes.data() + taken, bytes.size() - taken, MSG_NOSIGNAL);
      if (sent > 0) {
        taken += static_cast<std::size_t>(sent);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        wait_for(EPOLLIN | EPOLLOUT);
        break;
      } else if (errno != EINTR) {
        break;  // the socket is dead: its reader will get the reason
      }
    }
    return taken;
  }

  void ready(std::uint32_t events) {
    if (events & EPOLLOUT) {
      wait_for(EPOLLIN);
      events_.writable();
    }
    if (fd_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) receive();
  }

 private:
  void receive() {
    const auto buffer = reactor_.receive_buffer();
    const auto got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (got > 0) {
      events_.received(buffer.first(static_cast<std::size_t>(got)));
    } else if (got == 0) {
      end("Server closed the connection");
    } else if (errno != EAGAIN && errno != EINTR) {
      end(std::string("Error: ") + std::strerror(errno));
    }
  }
  void end(std::string why) {
    reactor_.forget(*this, fd_.get());
    fd_.close();
    events_.ended(Error{ErrorKind::closed, std::move(why)});
  }
  void wait_for(std::uint32_t events) {
    if (waiting_for_ != events) reactor_.watch(*this, fd_.get(), EPOLL_CTL_MOD, events);
    waiting_for_ = events;
  }

  SocketReactor& reactor_;
  OwnedFd fd_;
  ConnectionEvents& events_;
  std::uint32_t waiting_for_ = EPOLLIN;
};

Result<std::unique_ptr<Connection>> SocketReactor::open(const Endpoint& endpoint, ConnectionEvents& events,
                                                        Milliseconds limit) {
  auto fd =
      endpoint.transport == Transport::unix_socket ? dial_unix(endpoint, limit) : dial_tcp(endpoint, limit);
  if (!fd) return std::unexpected(std::move(fd.error()));
  return std::make_unique<SocketConnection>(*this, std::move(*fd), events);
}

void SocketReactor::watch(SocketConnection& connection, int fd, int operation, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &connection;
  ::epoll_ctl(epoll_.get(), operation, fd, &event);
}

void SocketReactor::forget(SocketConnection& connection, int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  // It may be among this turn's events that are still to be delivered.
  for (int i = 0; i < ready_count_; ++i)
    if (ready_[static_cast<std::size_t>(i)].data.ptr == &connection)
      ready_[static_cast<std::size_t>(i)].data.ptr = nullptr;
}

void SocketReactor::turn(std::chrono::nanoseconds limit) {
  ready_count_ = std::max(0, wait(epoll_.get(), ready_, limit));
  for (int i = 0; i < ready_count_; ++i) {
    const auto& event = ready_[static_cast<std::size_t>(i)];
    if (event.data.ptr) static_cast<SocketConnection*>(event.data.ptr)->ready(event.events);
  }
  ready_count_ = 0;
}

}  // namespace

Result<std::unique_ptr<Reactor>> make_socket_reactor() {
  OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail(ErrorKind::unsupported, std::string("epoll: ") + std::strerror(errno));
  return std::make_unique<SocketReactor>(std::move(epoll));
}

}  // namespace weir::client

// What the tests under librspreload.so share, which are programs of plain sockets: a connection through it.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

namespace weir::rspreload {

constexpr int patience_ms = 60'000;

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Only an rsocket knows its send queue's size.
inline bool is_rsocket(int fd) {
  int entries = 0;
  socklen_t size = sizeof entries;
  return ::getsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &entries, &size) == 0 && entries > 0;
}

inline sockaddr* as_address(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }
inline sockaddr_in loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
inline sockaddr_in name_of(int fd) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  EXPECT_EQ(::getsockname(fd, as_address(name), &size), 0);
  return name;
}

inline void wait_for(int fd, short events) {
  pollfd one{.fd = fd, .events = events, .revents = 0};
  EXPECT_EQ(::poll(&one, 1, patience_ms), 1);
}

struct Pair {
  Pair()
      : listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        client(::socket(AF_INET, SOCK_STREAM, 0)) {
    auto address = loopback();
    EXPECT_EQ(::bind(listener.get(), as_address(address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 4), 0);
    address = name_of(listener.get());
    EXPECT_EQ(::connect(client.get(), as_address(address), sizeof address), 0);
    server = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }
  Fd listener, client, server;
};

class Calls : public testing::Test, protected Pair {
 protected:
  int from() const { return client.get(); }
  int to() const { return server.get(); }
  // What the server has after `bytes` were sent.
  std::string received(std::size_t bytes) {
    std::string all;
    while (all.size() < bytes) {
      wait_for(to(), POLLIN);
      std::array<char, 4096> part;
      const ssize_t got = ::read(to(), part.data(), part.size());
      if (got <= 0) break;
      all.append(part.data(), static_cast<std::size_t>(got));
    }
    return all;
  }
  void send_and_wait(const std::string& text) {
    EXPECT_EQ(::send(from(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    wait_for(to(), POLLIN);
  }
};

}  // namespace weir::rspreload

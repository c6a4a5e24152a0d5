// What the tests of rsockets share: sockets that close themselves, and connected pairs on loopback.
#pragma once

#include <fcntl.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "link/unique_fd.hpp"
#include "tests/cm/cm_fixture.hpp"

namespace weir::rsocket {

using cm::as_address;
using cm::loopback;
using cm::patience_ms;

class Rsocket {
 public:
  Rsocket() = default;
  explicit Rsocket(int number) : number_(number) { EXPECT_GE(number, 0) << std::strerror(errno); }
  Rsocket(Rsocket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Rsocket& operator=(Rsocket&& other) noexcept {
    close();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  ~Rsocket() { close(); }
  void close() {
    if (number_ < 0) return;
    EXPECT_EQ(::rclose(std::exchange(number_, -1)), 0);
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

inline Rsocket stream() { return Rsocket(::rsocket(AF_INET, SOCK_STREAM, 0)); }
inline Rsocket datagram() { return Rsocket(::rsocket(AF_INET, SOCK_DGRAM, 0)); }

inline void set(const Rsocket& socket, int level, int name, int value) {
  ASSERT_EQ(::rsetsockopt(socket.get(), level, name, &value, sizeof value), 0) << std::strerror(errno);
}
inline int value_of(const Rsocket& socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::rgetsockopt(socket.get(), level, name, &value, &size), 0) << std::strerror(errno);
  return value;
}
inline void set_blocking(const Rsocket& socket, bool blocks) {
  ASSERT_EQ(::rfcntl(socket.get(), F_SETFL, blocks ? 0 : O_NONBLOCK), 0);
}

inline sockaddr_in name_of(const Rsocket& socket) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  EXPECT_EQ(::rgetsockname(socket.get(), as_address(name), &size), 0) << std::strerror(errno);
  EXPECT_EQ(size, sizeof name);
  return name;
}
inline void bind_to_loopback(const Rsocket& socket) {
  auto address = loopback(0);
  ASSERT_EQ(::rbind(socket.get(), as_address(address), sizeof address), 0) << std::strerror(errno);
}
inline Rsocket listening(int backlog = 8) {
  Rsocket listener = stream();
  bind_to_loopback(listener);
  EXPECT_EQ(::rlisten(listener.get(), backlog), 0) << std::strerror(errno);
  return listener;
}
inline int connect(const Rsocket& socket, sockaddr_in to) {
  return ::rconnect(socket.get(), as_address(to), sizeof to);
}

inline bool sleeps(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(status, text);
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.substr(name_end + 2, 1) == "S";
}

// poll() for one socket; those of `events` that came in time.
inline short poll(const Rsocket& socket, short events, int timeout_ms = patience_ms) {
  pollfd one{.fd = socket.get(), .events = events, .revents = 0};
  EXPECT_GE(::rpoll(&one, 1, timeout_ms), 0) << std::strerror(errno);
  return one.revents;
}

inline ssize_t send(const Rsocket& socket, std::string_view text, int flags = 0) {
  return ::rsend(socket.get(), text.data(), text.size(), flags);
}
// At most `most` bytes from one receive, or "(errno's text)" if it failed.
inline std::string receive(const Rsocket& socket, std::size_t most = 4096, int flags = 0) {
  std::string text(most, '\0');
  const auto got = ::rrecv(socket.get(), text.data(), text.size(), flags);
  if (got < 0) return std::string("(") + std::strerror(errno) + ")";
  text.resize(static_cast<std::size_t>(got));
  return text;
}
inline std::string words(int error) { return std::string("(") + std::strerror(error) + ")"; }

// Two streams connected to each other.
struct Pair {
  explicit Pair(int buffer_bytes = 0, int iomap_entries = 0) {
    Rsocket listener = listening();
    client = stream();
    for (const Rsocket* socket : {&listener, &client}) {
      if (buffer_bytes > 0) {
        set(*socket, SOL_SOCKET, SO_RCVBUF, buffer_bytes);
        set(*socket, SOL_SOCKET, SO_SNDBUF, buffer_bytes);
      }
      if (iomap_entries > 0) set(*socket, SOL_RDMA, RDMA_IOMAPSIZE, iomap_entries);
    }
    EXPECT_EQ(connect(client, name_of(listener)), 0) << std::strerror(errno);
    server = Rsocket(::raccept(listener.get(), nullptr, nullptr));
  }
  Rsocket client, server;
};

// Bytes that tell where they belong.
inline std::string pattern(std::size_t size, std::uint32_t seed = 1) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    seed = seed * 1664525 + 1013904223;
    bytes[i] = static_cast<char>(seed >> 24);
  }
  return bytes;
}

}  // namespace weir::rsocket

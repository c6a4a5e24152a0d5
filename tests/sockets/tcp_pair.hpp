// Two ends of a TCP connection in this process, and whether their bytes go over TCP.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weir::sockets::test {

// On loopback, at a port that the kernel chooses.
class Listener {
 public:
  Listener() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address_), size), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
  }
  ~Listener() { ::close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Connects `client` and returns the other end.
  int connect(int client) const {
    EXPECT_TRUE(reach(client));
    return accept();
  }
  bool reach(int client) const {
    return ::connect(client, reinterpret_cast<const sockaddr*>(&address_), sizeof address_) == 0;
  }
  int accept() const {
    const int server = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(server, 0);
    return server;
  }

 private:
  const int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address_{};
};

struct TcpPair {
  int client = -1, server = -1;

  TcpPair() : client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), server(Listener().connect(client)) {}
  ~TcpPair() {
    if (client >= 0) ::close(client);
    if (server >= 0) ::close(server);
  }
  TcpPair(const TcpPair&) = delete;
  TcpPair& operator=(const TcpPair&) = delete;
};

inline std::uint64_t bytes_by_tcp(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  return info.tcpi_bytes_sent;
}

// What the program gave to the kernel, sent or not: no repetition is counted.
inline std::uint64_t written_to_tcp(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  return info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes;
}

inline bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

inline std::string receive(int fd, std::size_t bytes) {
  std::string all(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t got = ::recv(fd, all.data() + have, bytes - have, 0);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  all.resize(have);
  return all;
}

inline constexpr std::string_view a_question = "twenty bytes or more?", an_answer = "yes, twenty or more.";

inline void exchange(const TcpPair& pair) {
  ASSERT_TRUE(send_all(pair.client, a_question));
  ASSERT_EQ(receive(pair.server, a_question.size()), a_question);
  ASSERT_TRUE(send_all(pair.server, an_answer));
  ASSERT_EQ(receive(pair.client, an_answer.size()), an_answer);
}

// Talks until neither end sends by TCP any more. False: they never stopped.
inline bool change_to_ring(const TcpPair& pair) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < until) {
    const auto before = bytes_by_tcp(pair.client) + bytes_by_tcp(pair.server);
    exchange(pair);
    if (::testing::Test::HasFatalFailure()) return false;
    if (bytes_by_tcp(pair.client) + bytes_by_tcp(pair.server) == before) return true;
  }
  return false;
}

// A system call that no library in front of the C library sees.
inline long by_instruction(long number, long a, long b = 0, long c = 0) {
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

inline bool readable(int fd, int timeout_ms) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, timeout_ms) == 1 && (one.revents & POLLIN) != 0;
}

constexpr int longest_ms = 10'000;  // for what comes for certain

}  // namespace weir::sockets::test

// A blocking test client that speaks raw bytes, so that what the server sends can be compared byte for byte.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/kv/whole_reply.hpp"

namespace weir::kv::testing {

inline std::string encode(const std::vector<std::string>& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    bytes.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
  }
  return bytes;
}

class WireClient {
 public:
  static WireClient unix_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return WireClient(AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  static WireClient tcp(std::uint16_t port, in_addr host = {htonl(INADDR_LOOPBACK)}) {
    const sockaddr_in address = ip(host, port);
    return WireClient(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  // From another address of this host: 127.0.0.`number`.
  static WireClient tcp_from(std::uint8_t number, std::uint16_t port) {
    WireClient client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in own = ip({htonl(0x7f000000u + number)}, 0);
    if (::bind(client.fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
      throw std::runtime_error("bind: " + std::string(std::strerror(errno)));
    const sockaddr_in address = ip({htonl(INADDR_LOOPBACK)}, port);
    client.connect(reinterpret_cast<const sockaddr*>(&address), sizeof address);
    return client;
  }
  // Takes over a connected socket.
  static WireClient adopted(int fd) { return WireClient(fd); }
  WireClient(WireClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}
  ~WireClient() { close(); }

  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  // Sends no more, but still reads.
  void end_sending() { ::shutdown(fd_, SHUT_WR); }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) throw std::runtime_error("send: " + std::string(std::strerror(errno)));
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  // One whole reply, raw. Throws if the server closes, or sends nothing for ten seconds.
  std::string reply() {
    std::size_t size = 0;
    while ((size = whole_reply(buffer_)) == 0) {
      if (!receive()) throw std::runtime_error("the server closed the connection; received: " + buffer_);
    }
    std::string bytes = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return bytes;
  }
  std::string call(const std::vector<std::string>& words) {
    send(encode(words));
    return reply();
  }
  // Everything up to the end of that text.
  std::string through(std::string_view text) {
    std::size_t searched = 0;
    std::size_t found = 0;
    while ((found = buffer_.find(text, searched)) == std::string::npos) {
      searched = buffer_.size() < text.size() ? 0 : buffer_.size() - text.size();
      if (!receive()) throw std::runtime_error("the server closed the connection");
    }
    std::string bytes = buffer_.substr(0, found + text.size());
    buffer_.erase(0, bytes.size());
    return bytes;
  }
  // That many bytes.
  std::string exactly(std::size_t size) {
    while (buffer_.size() < size) {
      if (!receive()) throw std::runtime_error("the server closed the connection");
    }
    std::string bytes = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return bytes;
  }
  // What has arrived, at least a byte.
  std::string some() {
    if (buffer_.empty() && !receive()) throw std::runtime_error("the server closed the connection");
    return std::exchange(buffer_, {});
  }
  // Everything until the connection ends.
  std::string until_closed() {
    while (receive()) {
    }
    return std::exchange(buffer_, {});
  }
  // Whether nothing has arrived.
  bool quiet() {
    pollfd wait{fd_, POLLIN, 0};
    return buffer_.empty() && ::poll(&wait, 1, 0) == 0;
  }

 private:
  explicit WireClient(int fd) : fd_(fd) {}
  WireClient(int family, const sockaddr* address, socklen_t size)
      : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    connect(address, size);
  }

  static sockaddr_in ip(in_addr host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr = host;
    return address;
  }
  void connect(const sockaddr* address, socklen_t size) {
    if (::connect(fd_, address, size) == 0) return;
    const std::string why = std::strerror(errno);
    close();
    throw std::runtime_error("connect: " + why);
  }

  bool receive() {
    pollfd wait{fd_, POLLIN, 0};
    if (::poll(&wait, 1, 10000) == 0)
      throw std::runtime_error("no reply for ten seconds; received: " + buffer_);
    char bytes[65536];
    const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }

  int fd_;
  std::string buffer_;
};

// The direct elements of an aggregate reply, each raw; its header first.
inline std::vector<std::string> elements(const std::string& reply) {
  std::vector<std::string> parts;
  const std::size_t line = reply.find("\r\n") + 2;
  parts.push_back(reply.substr(0, line));
  for (std::string_view rest = std::string_view(reply).substr(line); !rest.empty();) {
    const std::size_t size = whole_reply(rest);
    if (size == 0) throw std::runtime_error("no whole reply: " + std::string(rest));
    parts.emplace_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return parts;
}

}  // namespace weir::kv::testing

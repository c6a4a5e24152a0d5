// TCP and unix sockets: one recv and one sendmsg a round, on the poller.
#pragma once

#include <utility>

#include "rpc/poller.hpp"
#include "rpc/transport.hpp"

namespace weir::rpc {

// Owns a descriptor.
class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_;
};

// `fd` is connected and does not block. `peer` is what Transport::peer() says.
TransportPtr make_socket_transport(asio::io_context& io, OwnedFd fd, std::string peer);

}  // namespace weir::rpc

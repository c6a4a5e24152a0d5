// Accepts on a listening stream socket, in batches, and copes with a lack of descriptors.
//
// If accept fails for lack of descriptors or memory, listening pauses for 100 ms instead of spinning on a
// socket that stays readable; meanwhile clients wait in the backlog. Of consecutive failures only the first
// is logged. While all places for TLS handshakes are taken, one client is accepted for each look of the loop,
// for which one of the handshakes leaves (transport/handshake_places.hpp).
#pragma once

#include <sys/socket.h>

#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "kv/net/listener.hpp"
#include "kv/net/poller.hpp"
#include "transport/handshake_places.hpp"
#include "transport/owned_fd.hpp"
#include "transport/tcp_pacing.hpp"

namespace weir::kv {

class SocketListener : public Listener, private SocketPoller::Watcher {
 public:
  // `accepted` gets each new socket, which is non-blocking and close-on-exec.
  using Accepted = std::function<void(OwnedFd)>;

  // With `places`, accepts while one of them is free or can be made free.
  SocketListener(SocketPoller& poller, OwnedFd fd, std::string where, std::uint16_t port, Accepted accepted,
                 Log log, std::shared_ptr<transport::HandshakePlaces> places = nullptr);
  ~SocketListener() override;

  std::string where() const override { return where_; }
  std::uint16_t port() const override { return port_; }

 private:
  void ready(std::uint32_t events) override;
  void could_not_accept(int error);
  void pause(std::chrono::milliseconds time);

  SocketPoller& poller_;
  OwnedFd fd_;
  std::string where_;
  std::uint16_t port_;
  Accepted accepted_;
  Log log_;
  asio::steady_timer retry_;
  std::shared_ptr<transport::HandshakePlaces> places_;  // nullptr: no TLS
  bool failing_ = false;
  std::shared_ptr<bool> here_ = std::make_shared<bool>();
};

// A listening TCP socket and the port it is bound to; used by tcp and tls.
struct BoundSocket {
  OwnedFd fd;
  std::string address;
  std::uint16_t port = 0;
  transport::AcceptedPacing pacing;  // for the sockets that it accepts
};
Opened<BoundSocket> bind_tcp(const std::string& address, std::uint16_t port, int backlog);

// Sets the options, and finds the names, of an accepted TCP socket.
void tune_tcp(int fd, int keepalive_s);
struct TcpNames {
  std::string peer;
  std::string local;
  bool same_host = false;
};
TcpNames tcp_names(int fd);

}  // namespace weir::kv

#include "kv/net/socket_listener.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "transport/host_port.hpp"

namespace weir::kv {

SocketListener::SocketListener(SocketPoller& poller, OwnedFd fd, std::string where, std::uint16_t port,
                               Accepted accepted, Log log, std::shared_ptr<transport::HandshakePlaces> places)
    : poller_(poller),
      fd_(std::move(fd)),
      where_(std::move(where)),
      port_(port),
      accepted_(std::move(accepted)),
      log_(std::move(log)),
      retry_(poller.io()),
      places_(std::move(places)) {
  poller_.add(fd_.get(), *this, EPOLLIN);
}

SocketListener::~SocketListener() { poller_.remove(fd_.get()); }

void SocketListener::ready(std::uint32_t) {
  constexpr int most_accepts = 1000;
  for (int i = 0; i < most_accepts; ++i) {
    const bool crowded = places_ && places_->full();
    // After one has left, the others first read what has arrived.
    if (crowded && i > 0) return pause(std::chrono::milliseconds(0));
    if (crowded && !places_->has_room()) return pause(transport::HandshakePlaces::look_again);
    OwnedFd client(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (client) {
      failing_ = false;
      accepted_(std::move(client));
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      return could_not_accept(errno);
    if (errno == EAGAIN) return;
    // Any other error concerns only that client (it hung up in the backlog): continue with the next one.
  }
}

void SocketListener::could_not_accept(int error) {
  if (!std::exchange(failing_, true)) {
    log_(where_ + ": cannot accept clients: " + std::strerror(error) + "; trying again every 100 ms. " +
         "Raise the limit of open files (ulimit -n) or lower maxclients.");
  }
  pause(std::chrono::milliseconds(100));
}

void SocketListener::pause(std::chrono::milliseconds time) {
  poller_.change(fd_.get(), *this, 0);
  retry_.expires_after(time);
  retry_.async_wait([this, here = std::weak_ptr(here_)](const std::error_code& cancelled) {
    // The listener may have gone in the same turn in which the time was over.
    if (!cancelled && !here.expired()) poller_.change(fd_.get(), *this, EPOLLIN);
  });
}

namespace {

std::string numeric(const sockaddr* address, socklen_t size, bool with_port) {
  char host[NI_MAXHOST];
  char service[NI_MAXSERV];
  if (getnameinfo(address, size, host, sizeof host, service, sizeof service,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?:0";
  }
  return with_port ? transport::host_port_text(host, static_cast<std::uint16_t>(std::atoi(service))) : host;
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

bool same_address(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(a).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
  }
  return IN6_ARE_ADDR_EQUAL(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                            &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr);
}

}  // namespace

Opened<BoundSocket> bind_tcp(const std::string& address, std::uint16_t port, int backlog) {
  const bool any = address == "*" || address == "::*" || address.empty();
  addrinfo hints{};
  hints.ai_family = address == "*" ? AF_INET : address == "::*" ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  const std::string what = (any ? address : address) + ':' + service;
  if (const int e = getaddrinfo(any ? nullptr : address.c_str(), service.c_str(), &hints, &found); e != 0) {
    return std::unexpected("Could not listen on " + what + ": " + gai_strerror(e) + ". Check --bind.");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  OwnedFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return std::unexpected("Could not listen on " + what + ": socket: " + std::strerror(errno));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (found->ai_family == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd.get(), backlog) != 0) {
    const int error = errno;
    std::string text = "Could not listen on " + what + ": " + std::strerror(error) + ".";
    if (error == EADDRINUSE) text += " Another program has the port; stop it or choose another with --port.";
    if (error == EACCES) text += " Ports below 1024 need privileges; choose another with --port.";
    if (error == EADDRNOTAVAIL) text += " This host has no such address; check --bind.";
    return std::unexpected(text);
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  const std::uint16_t real =
      ntohs(bound.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(bound).sin_port
                                       : reinterpret_cast<sockaddr_in6&>(bound).sin6_port);
  transport::AcceptedPacing pacing(fd.get());
  return BoundSocket{std::move(fd), numeric(reinterpret_cast<sockaddr*>(&bound), size, true), real,
                     std::move(pacing)};
}

void tune_tcp(int fd, int keepalive_s) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (keepalive_s <= 0) return;
  const int interval = keepalive_s / 3 > 0 ? keepalive_s / 3 : 1;
  const int probes = 3;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &keepalive_s, sizeof keepalive_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

TcpNames tcp_names(int fd) {
  TcpNames names;
  sockaddr_storage peer{};
  sockaddr_storage local{};
  socklen_t size = sizeof peer;
  const bool has_peer = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
  if (has_peer) names.peer = numeric(reinterpret_cast<sockaddr*>(&peer), size, true);
  size = sizeof local;
  const bool has_local = getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) == 0;
  if (has_local) names.local = numeric(reinterpret_cast<sockaddr*>(&local), size, true);
  // Over RDMA, which has no loopback device, likewise: a peer with our own address is on this host.
  names.same_host = has_peer && (is_loopback(peer) || (has_local && same_address(peer, local)));
  return names;
}

}  // namespace weir::kv

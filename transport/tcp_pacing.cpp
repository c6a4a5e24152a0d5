#include "transport/tcp_pacing.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace weir::transport {

namespace {

constexpr std::string_view unpaced = "reno";

void choose(int fd, std::string_view name) {
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size()));
}

// What the socket has, if that paces.
std::string pacing_of(int fd) {
  char name[32] = {};  // of 16 at most
  socklen_t size = sizeof name - 1;
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0) return {};
  return std::string_view(name).starts_with("bbr") ? std::string(name) : std::string();
}

// An address that a socket can be bound to is one of this host's.
bool is_of_this_host(const sockaddr* address, socklen_t size) {
  sockaddr_storage any_port{};
  std::memcpy(&any_port, address, std::min<std::size_t>(size, sizeof any_port));
  if (address->sa_family == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(any_port).sin6_port = 0;
  else
    reinterpret_cast<sockaddr_in&>(any_port).sin_port = 0;
  const int probe = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool ours = bind(probe, reinterpret_cast<const sockaddr*>(&any_port), size) == 0;
  close(probe);
  return ours;
}

}  // namespace

AcceptedPacing::AcceptedPacing(int listener) : of_host_(pacing_of(listener)) {
  if (!of_host_.empty()) choose(listener, unpaced);
}

void AcceptedPacing::accepted(int fd) const {
  if (of_host_.empty()) return;
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return;  // it has gone again
  if (!is_of_this_host(reinterpret_cast<const sockaddr*>(&peer), size)) choose(fd, of_host_);
}

void spare_pacing(int fd, const sockaddr* to, socklen_t size) {
  if (!pacing_of(fd).empty() && is_of_this_host(to, size)) choose(fd, unpaced);
}

}  // namespace weir::transport

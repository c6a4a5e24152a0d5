#include "link/udp/port_probe.hpp"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>

#include <cerrno>

#include "link/udp/socket_address.hpp"

namespace weir::link {

// Not connected: the kernel counts the IDs of a connected socket's IPv4 datagrams, and the ICRC covers them.
// IP_RECVERR reports what ICMP says to sockets that are not.
std::unique_ptr<PortProbe> PortProbe::open(const UdpRoute& route) {
  const bool ipv6 = !is_v4(route.source);
  UniqueFd socket(::socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return nullptr;
  const int on = 1, whole = ipv6 ? IPV6_PMTUDISC_DO : IP_PMTUDISC_DO;
  const int level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
  if (::setsockopt(socket.get(), level, ipv6 ? IPV6_RECVERR : IP_RECVERR, &on, sizeof on) != 0 ||
      ::setsockopt(socket.get(), level, ipv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &whole, sizeof whole) !=
          0)
    return nullptr;
  SocketAddress from(ipv6, route.source, 0, route.interface);
  if (::bind(socket.get(), from.get(), from.bytes) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.bytes) != 0)
    return nullptr;
  return std::unique_ptr<PortProbe>(new PortProbe(std::move(socket), route, from.port()));
}

bool PortProbe::send(std::uint16_t port, std::span<const std::byte> datagram) const {
  const SocketAddress to(!is_v4(route_.source), route_.destination, port, route_.interface);
  return ::sendto(socket_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL, to.get(), to.bytes) ==
         static_cast<ssize_t>(datagram.size());
}

bool PortProbe::refused() const {
  int error = 0;
  socklen_t bytes = sizeof error;
  return ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == ECONNREFUSED;
}

}  // namespace weir::link

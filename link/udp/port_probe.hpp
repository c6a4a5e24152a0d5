// A datagram to another host by a socket of its own, which hears if no program has the port there: that
// host's kernel says so (ICMP "port unreachable"), and the socket becomes readable. Silence says nothing:
// programs may be stopped, and firewalls drop either message.
//
// Who guesses the socket's own port can forge that answer, so ask again before you end anything.
//
// Threading: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "link/fork_guard.hpp"
#include "link/udp/udp_route.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

class PortProbe final : private ForkAware {
 public:
  // From the route's source. nullptr: this host has no such address, or no descriptors are left.
  static std::unique_ptr<PortProbe> open(const UdpRoute& route);
  PortProbe(const PortProbe&) = delete;
  PortProbe& operator=(const PortProbe&) = delete;

  std::uint16_t source_port() const { return source_port_; }
  // IPv4: with the ID 0, as from UdpPort. False: the kernel did not take it.
  bool send(std::uint16_t port, std::span<const std::byte> datagram) const;
  int descriptor() const { return socket_.get(); }
  // Once it is readable: nobody has the port. False: something else went wrong on the way.
  bool refused() const;

 private:
  PortProbe(UniqueFd socket, const UdpRoute& route, std::uint16_t source_port)
      : socket_(std::move(socket)), route_(route), source_port_(source_port) {}
  // A child never uses its copy.
  void lock_for_fork() override {}
  void unlock_after_fork() override {}
  void abandon_in_child() override { socket_.reset(); }

  UniqueFd socket_;
  const UdpRoute route_;
  const std::uint16_t source_port_;
  ForkRegistration fork_registration_{*this};
};

}  // namespace weir::link

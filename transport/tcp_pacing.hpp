// Turns off pacing for TCP between two programs on one host.
//
// BBR, the congestion control of many hosts, sends no faster than the network bandwidth it estimates. Within
// a host there is no network, and pacing makes a round trip of a megabyte take about twice as long. So
// connections within one host get Reno instead: every kernel has it, every process may choose it, and without
// a loss it holds nothing back. Other connections keep their host's choice, as do all connections where that
// choice is not BBR.
//
// Reno must be chosen before a connection begins: once BBR has begun to pace a connection, it stays paced
// under any other algorithm.
//
// The descriptors are TCP sockets and stay the caller's; if a call fails, the socket keeps its host's
// setting.
#pragma once

#include <sys/socket.h>

#include <string>

namespace weir::transport {

// Pacing of the connections that a listening socket accepts.
class AcceptedPacing {
 public:
  // Construct it before the listener accepts anything.
  explicit AcceptedPacing(int listener);
  // Call it for each accepted socket as soon as it is accepted: a connection from another host gets the
  // algorithm that the listener's host chose.
  void accepted(int fd) const;

 private:
  std::string of_host_;  // empty: the host's algorithm does not pace
};

// Turns off pacing for a socket that is about to connect.
void spare_pacing(int fd, const sockaddr* to, socklen_t size);

}  // namespace weir::transport

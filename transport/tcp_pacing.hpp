// TCP between two programs of one host, without pacing.
//
// BBR, which many hosts have as their congestion control, sends no faster than the network it believes in.
// Within a host there is none, and a megabyte there and back takes about twice as long for it. So connections
// of one host get Reno instead, which every kernel has and every process may choose, and which without a loss
// holds nothing back. Others keep what their host chose, and so do all where that is not BBR.
//
// It has to be chosen before a connection begins: what BBR has begun to pace stays paced under any other.
//
// Descriptors are of TCP sockets and stay the caller's; what fails leaves a socket as its host has it.
#pragma once

#include <sys/socket.h>

#include <string>

namespace weir::transport {

// Of the connections that a listening socket accepts.
class AcceptedPacing {
 public:
  // Before anything is accepted.
  explicit AcceptedPacing(int listener);
  // Each accepted socket, as soon as it is: one of another host gets what that of the listener chose.
  void accepted(int fd) const;

 private:
  std::string of_host_;  // empty: that does not pace
};

// Of a socket that is about to connect.
void spare_pacing(int fd, const sockaddr* to, socklen_t size);

}  // namespace weir::transport

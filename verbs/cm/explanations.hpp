// What may be the matter where an address or a port cannot be reached: a look at what else is on the host.
// The connection manager's events can only say that nobody is there.
//
// Reads the runtime directory and /proc; any thread. Never fails: what cannot be read says nothing.
#pragma once

#include <string>
#include <vector>

#include "verbs/cm/endpoint.hpp"

namespace weir::cm {

// What else is there, by its place in the file system; other places in tests.
struct Surroundings {
  std::string directory;                   // of this network namespace, in the runtime directory
  std::string network = "/proc/self/net";  // the tables of TCP sockets
};

// "10.1.2.3", "fd00::1"
std::string text_of(const Endpoint& endpoint);

// The whole sentence. `port_space` is an rdma_port_space.
std::string why_not_reached(const Endpoint& destination);
std::string why_nobody_listens(std::uint16_t port_space, const Endpoint& destination,
                               const Surroundings& around);

}  // namespace weir::cm

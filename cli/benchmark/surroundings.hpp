// The circumstances of a measurement: machine, placement of client and server, and the server itself. Figures
// mean little without them: with one connection, placement alone changes them threefold.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/client/session.hpp"

namespace weir::benchmark {

struct Surroundings {
  std::string cpu_model;
  unsigned cpus = 0;
  std::string kernel;
  std::string client_cpus;  // the client's allowed CPUs: "1", "0-1"
  std::string server;       // what it reports about itself
  std::string server_cpus;  // its allowed CPUs; empty: on another machine, or unknown
  std::string rdma;         // the RDMA device and why it was chosen; empty: no RDMA was used
};

// `pinned_cpus`: where the client's threads will be pinned. `server` may be null.
Surroundings look_around(const std::vector<int>& pinned_cpus, client::Session* server);

// A setting of the server; empty: the server does not tell.
std::string server_setting(client::Session& server, const std::string& name);

}  // namespace weir::benchmark

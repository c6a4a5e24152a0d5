// Where a measurement was taken: machine, placement of client and server, the server itself. A figure without
// these means little: with one connection, placement alone changes it threefold.
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
  std::string client_cpus;  // where the client may run: "1", "0-1"
  std::string server;       // what it says it is
  std::string server_cpus;  // where it may run; empty: not on this machine, or not known
  std::string rdma;         // the device RDMA went over and why; empty: no RDMA took part
};

// `pinned_cpus`: as the client's threads will be pinned. `server` may be null.
Surroundings look_around(const std::vector<int>& pinned_cpus, client::Session* server);

// One setting of the server, empty if it does not tell.
std::string server_setting(client::Session& server, const std::string& name);

}  // namespace weir::benchmark

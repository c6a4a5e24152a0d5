// A server of a pool, as Pool::servers() shows it.
#pragma once

#include <cstdint>
#include <string>

namespace weir::rpc {

// What a pool knows of a server.
struct PooledServer {
  std::string address;
  std::uint32_t connections = 0;
  std::uint32_t in_flight = 0;
  std::uint64_t calls = 0;         // attempts that were sent there
  std::uint64_t failed_calls = 0;  // of those, by what counts against a server (outliers.hpp)
  bool ejected = false;            // gets no calls for a while (PoolOptions::outliers)
  std::uint32_t failures = 0;      // to connect or to answer a ping, since it last answered
  std::string last_error;          // of those
  std::string transport;           // what it is connected over, "tcp" where rdma fell back to that
};

}  // namespace weir::rpc

// What the user said of `weir run --sockets`, and lines for those who ask what happens.
//
// Threading: any thread; read from the environment on first use.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "hash/siphash.hpp"
#include "sockets/networks.hpp"
#include "sockets/rules.hpp"

namespace weir::sockets {

struct Settings {
  bool off = false;
  bool trace = false;
  bool report = false;                 // what became of all connections, when the process ends
  Rules rules;                         // WEIR_SOCKETS_RULES
  Networks peers;                      // WEIR_SOCKETS_PEERS: whose hosts are asked
  hash::SipKey secret;                 // WEIR_SOCKETS_SECRET: a file that these hosts have, too; 0: none
  std::uint32_t after_calls = 8;       // WEIR_SOCKETS_AFTER: of the program, before a peer is looked for
  std::uint64_t change_every = 0;      // WEIR_SOCKETS_CHANGE_EVERY: bytes; 0: never without need. For tests
  std::uint32_t ring_bytes = 1 << 16;  // WEIR_SOCKETS_RING: bytes, a power of two
  std::chrono::microseconds spin{50};  // WEIR_SOCKETS_SPIN: how long to look before a sleep
  bool wakes_by_ring = false;  // WEIR_SOCKETS_SLEEPERS=ring: also where the receiver sleeps. For tests
  std::string directory;
};

const Settings& settings();
// Programs clear their environment (nginx's workers): the NIC is to find what it reads there as it was at the
// start.
void keep_environment();
// Writes a line to standard error if WEIR_SOCKETS=trace.
void trace(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace weir::sockets

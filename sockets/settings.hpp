// The user's settings for `weir run --sockets`, and trace lines for users who want to see what happens.
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
  bool report = false;                 // summarize all connections when the process ends
  Rules rules;                         // WEIR_SOCKETS_RULES
  Networks peers;                      // WEIR_SOCKETS_PEERS: the networks whose hosts are asked
  hash::SipKey secret;                 // WEIR_SOCKETS_SECRET: a file that these hosts share; 0: none
  std::uint32_t after_calls = 8;       // WEIR_SOCKETS_AFTER: calls of the program before a peer is sought
  std::uint64_t change_every = 0;      // WEIR_SOCKETS_CHANGE_EVERY: bytes; 0: only when needed. For tests
  std::uint32_t ring_bytes = 1 << 16;  // WEIR_SOCKETS_RING: bytes, a power of two
  std::chrono::microseconds spin{50};  // WEIR_SOCKETS_SPIN: how long to look before a sleep
  bool wakes_by_ring = false;          // WEIR_SOCKETS_SLEEPERS=ring: even if the receiver sleeps. For tests
  std::string runtime_directory;       // WEIR_RUNTIME_DIR; empty: the user's own
};

const Settings& settings();
// The folder of the table. It is the effective user's: servers give up root after they have started.
std::string table_directory();
// Programs clear their environment (nginx's workers do), but the NIC must find its variables
// as they were at the start.
void keep_environment();
// Writes a line to standard error if WEIR_SOCKETS=trace.
void trace(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace weir::sockets

// A connection in this process whose bytes use the ring, or change between ring and TCP every few bytes, or
// which is the kernel's alone.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "tests/sockets/tcp_pair.hpp"

namespace weir::sockets::test {

inline bool changes_at_random() { return std::getenv("WEIR_SOCKETS_CHANGE_EVERY") != nullptr; }
inline bool kernel_alone() {
  const char* const mode = std::getenv("WEIR_SOCKETS");
  return mode != nullptr && std::string_view(mode) == "off";
}

// Brings a new connection into the state that this run is about.
inline void warm_up(const TcpPair& pair) {
  if (kernel_alone())
    exchange(pair);
  else if (changes_at_random())
    for (int i = 0; i < 50; ++i) exchange(pair);
  else
    ASSERT_TRUE(change_to_ring(pair)) << "the connection stayed on TCP";
}

class Change : public ::testing::Test {
 protected:
  void SetUp() override { warm_up(pair_); }
  TcpPair pair_;
};

}  // namespace weir::sockets::test

// A connection in this process whose bytes use the ring, or change between ring and TCP every few bytes.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/sockets/tcp_pair.hpp"

namespace weir::sockets::test {

inline bool changes_at_random() { return std::getenv("WEIR_SOCKETS_CHANGE_EVERY") != nullptr; }

class Change : public ::testing::Test {
 protected:
  void SetUp() override {
    if (changes_at_random())
      for (int i = 0; i < 50; ++i) exchange(pair_);
    else
      ASSERT_TRUE(change_to_ring(pair_)) << "the connection stayed on TCP";
  }
  TcpPair pair_;
};

}  // namespace weir::sockets::test

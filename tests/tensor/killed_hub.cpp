// A hub for tests that kill it: publishes version after version of "small" and "large", whose numbers
// identify the hub's generation and the version. Usage: tensor_killed_hub ADDRESS; prints "ADDRESS
// GENERATION".
#include <chrono>
#include <cstdio>
#include <thread>

#include "tests/tensor/hub_and_peer.hpp"

int main(int argc, char** argv) {
  using namespace weir::tensor;
  using namespace weir::tensor::testing_support;
  if (argc != 2) return 2;
  const auto hub = must(Hub::listen(argv[1], test_provider()));
  for (std::uint64_t version = 1;; ++version) {
    publish(*hub, "small", numbers(500, hub->generation() + version));
    publish(*hub, "large", numbers(100'000, hub->generation() + version));
    if (version == 1) {
      std::printf("%s %llu\n", hub->address().c_str(), static_cast<unsigned long long>(hub->generation()));
      std::fflush(stdout);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(300));  // leaves readers a share of the core
  }
}

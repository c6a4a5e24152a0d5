// Rank 1 of a driver test: PLUGIN VERSION SCENARIO SEED [ARGUMENT]. Lines to and from rank 0 are its standard
// output and input; the last one is "ok" or what went wrong.
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "tests/tensor/nccl/scenarios.hpp"

using namespace weir::nccl::testing_support;

int main(int argc, char** argv) try {
  if (argc < 5) return 2;
  const auto net = open_net(argv[1], std::stoi(argv[2]));
  Lines lines{[](const std::string& line) { std::cout << line << std::endl; },
              [] {
                std::string line;
                std::getline(std::cin, line);
                return line;
              }};
  Rank rank{*net, 1, lines, std::stoull(argv[4]), argc > 5 ? argv[5] : ""};
  check(net->init(keep_log()), "init");
  run_scenario(argv[3], rank);
  check(net->finalize(), "finalize");
  std::cout << "ok" << std::endl;
} catch (const std::exception& failure) {
  std::cout << "failed: " << failure.what() << std::endl;
  return 1;
}

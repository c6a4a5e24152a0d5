// A rank of a driver test: [--first] PLUGIN VERSION SCENARIO SEED [ARGUMENT]; the second rank without
// --first. It exchanges lines with the other rank through standard output and input. The last line is "ok" or
// what went wrong; the exit status is 0 or 1.
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "tests/nccl/scenarios.hpp"

using namespace weir::nccl::testing_support;

int main(int argc, char** argv) try {
  const bool first = argc > 1 && std::string_view(argv[1]) == "--first";
  if (first) ++argv, --argc;
  if (argc < 5) return 2;
  const auto net = open_net(argv[1], std::stoi(argv[2]));
  Lines lines{[](const std::string& line) { std::cout << line << std::endl; },
              [] {
                std::string line;
                std::getline(std::cin, line);
                return line;
              }};
  Rank rank{*net, first ? 0 : 1, lines, std::stoull(argv[4]), argc > 5 ? argv[5] : ""};
  check(net->init(keep_log()), "init");
  run_scenario(argv[3], rank);
  check(net->finalize(), "finalize");
  std::cout << "ok" << std::endl;
} catch (const std::exception& failure) {
  std::cout << "failed: " << failure.what() << std::endl;
  std::cerr << "failed: " << failure.what() << '\n' << kept_log();
  return 1;
}

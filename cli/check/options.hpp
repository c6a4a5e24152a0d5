// The command line of weir-check.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace weir::check {

struct Options {
  std::string path;
  bool fix = false, yes = false, json = false;
};

// Fills `options`. Returns an exit status if the program should end: 0 after help, 2 after a complaint.
std::optional<int> read_options(std::span<const std::string> arguments, Options& options);

}  // namespace weir::check

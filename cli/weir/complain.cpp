#include <cstdio>

#include "cli/weir/command.hpp"

namespace weir::command {

int complain(std::string_view subcommand, std::string_view what, int status) {
  std::fprintf(stderr, "weir %.*s: %.*s\n", static_cast<int>(subcommand.size()), subcommand.data(),
               static_cast<int>(what.size()), what.data());
  return status;
}

}  // namespace weir::command

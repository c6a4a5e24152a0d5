#include "cli/shell/tasks.hpp"

#include <fmt/core.h>

#include <cstdio>

namespace weir::shell {

int failed(const client::Error& error) {
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", error.what);
  return 1;
}

}  // namespace weir::shell

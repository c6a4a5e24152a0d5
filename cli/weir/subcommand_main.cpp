#include "cli/weir/subcommand_main.hpp"

#include <cstdio>
#include <vector>

#include "cli/client/standard_output.hpp"

namespace weir::command {

int subcommand_main(std::string_view name, int (*subcommand)(std::span<const std::string>), int not_written,
                    int count, char** values) {
  const std::string called(name);
  const std::vector<std::string> arguments(values + 1, values + count);
  if (arguments.size() == 1 && arguments.front() == "--version") {
    std::printf("weir-%s %s\n", called.c_str(), WEIR_VERSION);
    return client::output_arrived("weir-" + called, 0, not_written);
  }
  return client::output_arrived("weir " + called, subcommand(arguments), not_written);
}

}  // namespace weir::command

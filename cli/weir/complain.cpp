#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/weir/command.hpp"

namespace weir::command {

int complain(std::string_view subcommand, std::string_view what, int status) {
  std::fprintf(stderr, "weir %.*s: %.*s\n", static_cast<int>(subcommand.size()), subcommand.data(),
               static_cast<int>(what.size()), what.data());
  return status;
}

int print_out(std::string_view subcommand, std::string_view text, int status, int not_written) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return status;
  return complain(subcommand, std::string("cannot write to standard output: ") + std::strerror(errno),
                  not_written);
}

}  // namespace weir::command

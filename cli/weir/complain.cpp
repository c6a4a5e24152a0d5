#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/weir/command.hpp"
#include "screen/terminal.hpp"
#include "screen/wrap.hpp"

namespace weir::command {

int complain(std::string_view subcommand, std::string_view what, int status) {
  const std::string text = "weir " + std::string(subcommand) + ": " + std::string(what);
  std::fprintf(stderr, "%s\n", screen::message(text).c_str());
  return status;
}

int print_out(std::string_view subcommand, std::string_view text, int status, int not_written) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return status;
  return complain(subcommand, std::string("cannot write to standard output: ") + std::strerror(errno),
                  not_written);
}

int print_help(std::string_view subcommand, std::string_view help, int not_written) {
  return print_out(subcommand, screen::wrapped(help, screen::columns_of(stdout)), 0, not_written);
}

}  // namespace weir::command

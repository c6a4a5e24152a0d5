#include "cli/weir/other_program.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "cli/weir/command.hpp"

namespace weir::command {

int become_other_program(const std::string& subcommand, std::span<const std::string> arguments) {
  std::error_code failed;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  const std::string name = "weir-" + subcommand;
  const std::string program = (here / name).string();
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  if (errno == ENOENT)
    return complain(subcommand,
                    program +
                        " is not there: this subcommand is a program of its own; build it (make programs), " +
                        "or install the package weir",
                    127);
  return complain(subcommand, program + ": " + std::strerror(errno), 126);
}

}  // namespace weir::command

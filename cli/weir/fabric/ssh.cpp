// `weir fabric ssh`: for launchers that start programs on other hosts by ssh.
#include <algorithm>
#include <cstdlib>

#include "cli/weir/command.hpp"
#include "cli/weir/fabric/fabric_command.hpp"
#include "cli/weir/launch/launch.hpp"

namespace weir::command {
namespace {

// Options of ssh(1) that launchers give and that mean nothing here.
constexpr std::string_view flags = "-46AaCfGgKkMNnqsTtVvXxYy";
constexpr std::string_view with_value = "BbcDEeFIiJLlmOopQRSWw";

bool is_flag(std::string_view word) {
  return word.size() > 1 && std::ranges::all_of(word.substr(1), [](char letter) {
           return letter != '-' && flags.find(letter) != std::string_view::npos;
         });
}

}  // namespace

int fabric_ssh(std::span<const std::string> arguments) {
  Launch launch;
  std::size_t next = 0;
  for (; next < arguments.size() && arguments[next].starts_with('-'); ++next) {
    const std::string& word = arguments[next];
    if (word == "--help" || word == "-h") return print_help("fabric ssh", fabric_help, fabric_failed);
    if (is_flag(word)) continue;
    const bool takes_value = word == "--fabric" || (word.size() >= 2 && word[1] != '-' &&
                                                    with_value.find(word[1]) != std::string_view::npos);
    if (!takes_value) return complain("fabric ssh", "it does not know " + word + "; see weir fabric --help");
    if (word.size() > 2 && word != "--fabric") continue;  // -oBatchMode=yes
    if (next + 1 == arguments.size()) return complain("fabric ssh", word + " wants a value");
    ++next;
    if (word == "--fabric") launch.fabric = arguments[next];
  }
  if (next == arguments.size()) return complain("fabric ssh", "it wants a host; see weir fabric --help");
  launch.host = arguments[next].substr(arguments[next].rfind('@') + 1);  // you are the same user there
  const char* const shell = std::getenv("SHELL");
  std::vector<std::string> command{shell != nullptr && *shell != '\0' ? shell : "/bin/sh"};
  std::string line;
  for (const std::string& word : arguments.subspan(next + 1)) line += (line.empty() ? "" : " ") + word;
  if (!line.empty()) command.insert(command.end(), {"-c", line});
  launch.command = command;
  return become("fabric ssh", launch);
}

}  // namespace weir::command

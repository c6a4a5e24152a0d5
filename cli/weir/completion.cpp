// `weir completion SHELL`: prints the script that the package installs, for users of a build tree.
#include <cstdio>

#include "cli/weir/command.hpp"
#include "cli/weir/completion_scripts.hpp"
#include "screen/terminal.hpp"

namespace weir::command {

int completion(std::span<const std::string> arguments) {
  struct Script {
    std::string_view shell;
    const char* text;
  };
  const Script scripts[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
  if (arguments.size() == 1)
    for (const auto& script : scripts)
      if (script.shell == arguments[0]) {
        std::fputs(script.text, stdout);
        return 0;
      }
  if (arguments.size() == 1 && !arguments[0].starts_with('-'))
    return complain("completion", "there is none for '" + arguments[0] + "', only for bash, zsh and fish");
  const bool asked = arguments.size() == 1 && (arguments[0] == "--help" || arguments[0] == "-h");
  screen::print_wrapped(asked ? stdout : stderr, R"help(Usage: weir completion bash|zsh|fish

Prints what lets the shell complete weir, weir-cli, weir-benchmark, weir-server and weir-check:
  bash:  eval "$(weir completion bash)"          in ~/.bashrc
  zsh:   eval "$(weir completion zsh)"           in ~/.zshrc, after compinit
  fish:  weir completion fish | source           in ~/.config/fish/config.fish
)help");
  return asked ? 0 : 2;
}

}  // namespace weir::command

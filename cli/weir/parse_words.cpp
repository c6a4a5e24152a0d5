#include "cli/weir/parse_words.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/weir/command.hpp"

namespace weir::command {

std::optional<int> parse_words(CLI::App& app, std::string_view subcommand,
                               std::span<const std::string> arguments) {
  app.set_help_flag("-h,--help", "this text");
  std::vector<std::string> words(arguments.rbegin(), arguments.rend());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    return complain(subcommand, fmt::format("{}; see weir {} --help", error.what(), subcommand));
  }
  return std::nullopt;
}

}  // namespace weir::command

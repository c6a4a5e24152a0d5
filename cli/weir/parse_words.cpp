#include "cli/weir/parse_words.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/weir/command.hpp"
#include "screen/terminal.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::command {

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  const std::vector<std::string> rest = app.remaining();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !rest.empty()) {
    const auto option = std::ranges::find_if(rest, [](const auto& word) { return word.starts_with('-'); });
    what = option != rest.end() ? "unknown option " + *option + did_you_mean_option(*option, app.help())
                                : "unexpected argument '" + rest.front() + "'";
  }
  return fmt::format("{}; see {} --help", what, app.get_name());
}

std::optional<int> parse_words(CLI::App& app, std::string_view subcommand,
                               std::span<const std::string> arguments) {
  app.set_help_flag("-h,--help", "this text");
  std::vector<std::string> words(arguments.rbegin(), arguments.rend());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    screen::print_wrapped(stdout, app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    return complain(subcommand, explain(app, error));
  }
  return std::nullopt;
}

}  // namespace weir::command

// Reads the words after a subcommand's name with CLI11: what all subcommands do alike.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace weir::command {

// What is wrong, where to read on, and what was probably meant, as text to print.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

// Fills the variables that `app` binds. If the command ends here, returns its exit status: 0 after its
// help, 2 after a complaint.
std::optional<int> parse_words(CLI::App& app, std::string_view subcommand,
                               std::span<const std::string> arguments);

}  // namespace weir::command

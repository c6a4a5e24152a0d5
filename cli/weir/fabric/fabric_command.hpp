// The subcommands of `weir fabric`. Each takes the words after its name and returns the exit status.
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::command {

inline constexpr int fabric_failed = 1, fabric_misused = 2;

// A scenario in virtual time, if the words name a file; otherwise a program in a host, as `weir run`.
int fabric_run(std::span<const std::string> arguments);
int fabric_test(std::span<const std::string> arguments);
int fabric_up(std::span<const std::string> arguments);
int fabric_list(std::span<const std::string> arguments);
int fabric_ps(std::span<const std::string> arguments);
int fabric_top(std::span<const std::string> arguments);
int fabric_ssh(std::span<const std::string> arguments);
int fabric_link(std::span<const std::string> arguments);
int fabric_down(std::span<const std::string> arguments);

extern const std::string_view fabric_help;

// Columns as wide as what is in them; the last is not filled up. The first row has as many as the others.
std::string table_of(const std::vector<std::vector<std::string>>& rows);

// An option of these subcommands: with a value, or a flag.
struct FabricOption {
  std::string_view name;
  std::string* value = nullptr;
  bool* flag = nullptr;
  char between = '\0';  // may be repeated; stands between the values
};

// Reads options wherever they stand; the other words are returned. The error is the exit status, after a
// complaint.
std::expected<std::vector<std::string>, int> read_fabric_words(std::string_view subcommand,
                                                               std::span<const std::string> arguments,
                                                               std::span<const FabricOption> options);

}  // namespace weir::command

// The subcommands of `weir`. Each takes the words after its name and returns the exit status.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir::command {

int run(std::span<const std::string> arguments);
int devices(std::span<const std::string> arguments);
int trace(std::span<const std::string> arguments);
int faults(std::span<const std::string> arguments);
int seeds(std::span<const std::string> arguments);
int fabric(std::span<const std::string> arguments);
int sockets(std::span<const std::string> arguments);
int stat(std::span<const std::string> arguments);
int plan(std::span<const std::string> arguments);
int sim(std::span<const std::string> arguments);
int collector(std::span<const std::string> arguments);
int rpc(std::span<const std::string> arguments);
int tensor(std::span<const std::string> arguments);
int completion(std::span<const std::string> arguments);

// Prints "weir run: what" on standard error and returns `status`.
int complain(std::string_view subcommand, std::string_view what, int status = 2);

// Prints `text` and returns `status`. If standard output fails, complains and returns `not_written`.
int print_out(std::string_view subcommand, std::string_view text, int status, int not_written);

// The same for a help, as wide as the terminal; returns 0.
int print_help(std::string_view subcommand, std::string_view help, int not_written);

}  // namespace weir::command

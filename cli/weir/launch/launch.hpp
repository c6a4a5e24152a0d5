// Becoming a program that runs on the software NIC: what `weir run` and `weir trace` share.
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::command {

// An option in front of the command. With a value, which is put into `value` (behind a comma if it has one
// already and `list`), or without, which sets `flag`.
struct LaunchOption {
  std::string_view name;
  std::string* value = nullptr;
  bool* flag = nullptr;
  bool list = false;
};

// What the program is to see, and its words.
struct Launch {
  std::string library_directory;
  std::string devices = "1", name = "weir0", gids, mtu, sockets_peers;
  bool help = false, share_memory = false, no_process_vm = false, rsockets = false, sockets = false;
  std::vector<std::pair<std::string, std::string>> environment;  // more of it
  std::span<const std::string> command;

  std::vector<LaunchOption> options();  // those that set the members above
};

// Up to the command, which begins behind "--" or with the first word that is no option. The status to exit
// with if they make no sense, which it has said then; `help` is the subcommand's text, which names them all.
std::expected<std::span<const std::string>, int> read_launch_options(std::string_view subcommand,
                                                                     std::span<const std::string> arguments,
                                                                     std::span<const LaunchOption> options,
                                                                     std::string_view help);

// Does not return unless it fails, which it has said then: the status to exit with.
int become(std::string_view subcommand, const Launch& launch);

}  // namespace weir::command

// Replaces this process with a program that runs on the software NIC; `weir run` and `weir trace` share it.
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::command {

// An option before the command. One with a value stores it in `value`; if `list` is set, it appends the value
// after `between`. One without a value sets `flag`. One with both may have a value, behind "=", and sets
// `flag` either way.
struct LaunchOption {
  std::string_view name;
  std::string* value = nullptr;
  bool* flag = nullptr;
  bool list = false;
  char between = ',';
};

// What the program is to see, and its command line.
struct Launch {
  std::string library_directory;
  std::string devices = "1", name = "weir0", gids, mtu, sockets_peers, faults_file, faults, fabric, host,
              spin, carrier;
  bool help = false, share_memory = false, no_process_vm = false, packets = false, rsockets = false,
       sockets = false, check = false, weak = false;
  std::string check_words, check_suppressions, json, weak_words;
  std::vector<std::pair<std::string, std::string>> environment;  // further variables
  std::span<const std::string> command;

  bool has_faults() const { return !faults_file.empty() || !faults.empty(); }

  std::vector<LaunchOption> options();  // the options that set the members above
};

// Reads the options before the command, which begins after "--" or with the first word that is no option. On
// an error it complains and returns the exit status; `help` is the subcommand's text, listing all options.
std::expected<std::span<const std::string>, int> read_launch_options(std::string_view subcommand,
                                                                     std::span<const std::string> arguments,
                                                                     std::span<const LaunchOption> options,
                                                                     std::string_view help);

// `weir run`, also as `weir fabric run` (`subcommand`), where a host must be named. Returns the exit status,
// like become().
enum class Place { anywhere, in_a_host };
int run_program(std::string_view subcommand, std::span<const std::string> arguments, Place place);

// Returns only on failure, after a complaint, and where the program runs in another host (--host): the exit
// status.
int become(std::string_view subcommand, const Launch& launch);

}  // namespace weir::command

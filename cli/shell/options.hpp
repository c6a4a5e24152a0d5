// weir-cli's command line as a value.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/client/server_options.hpp"
#include "cli/shell/reply_text.hpp"

namespace weir::shell {

enum class Mode {
  command,
  pipe,
  scan,
  big_keys,
  memory_keys,
  hot_keys,
  stat,
  latency,
  latency_history,
  latency_spectrum,
  own_latency,  // of this machine: no server is asked
  cache_test,
  follow,    // as a replica
  snapshot,  // written to a file
  debug_script,
  manage_cluster
};

struct Options {
  client::ServerOptions server;
  std::vector<std::string> command;  // empty: interactive, or lines of standard input
  Mode mode = Mode::command;
  long long repeat = 1;  // negative: for ever
  double interval_s = 0;
  std::optional<Output> output;  // not set: formatted on a terminal, otherwise raw
  Delimiters delimiters;
  bool last_argument_from_stdin = false;
  std::optional<std::string> tag_for_stdin;  // -X
  bool quoted_input = false;
  bool exit_with_error = false;     // -e
  bool cluster = false;             // -c
  std::optional<bool> show_pushes;  // not set: on a terminal
  std::string pattern;              // for --scan
  long long scan_count = 0;
  std::optional<long long> memory_samples;  // for --memkeys: elements to sample; 0: all
  double pipe_timeout_s = 30;
  // --eval; `command` has its keys, a comma, and its arguments.
  struct Script {
    std::string file;
    bool debug_at_once = false;  // --ldb-sync-mode: the server waits, and changes stay
  } script;
  struct Snapshot {
    std::string file;  // "-": standard output
    bool only_functions = false;
  } snapshot;
  struct Measurement {
    double own_latency_s = 0;
    long long cache_keys = 0;
  } measurement;
  std::vector<std::string> cluster_order;  // --cluster: a command and its arguments
  bool ask_password = false;
  bool warn_about_password = true;
  bool help = false;
  bool version = false;
};

client::Result<Options> parse_options(std::span<const std::string> arguments);
// Removes the quotes of --quoted-input; false: an argument is not properly quoted.
bool unquote_command(Options&);
std::string help_text();

}  // namespace weir::shell

#include "cli/shell/options.hpp"

#include <limits>
#include <utility>

#include "cli/shell/quoting.hpp"

namespace weir::shell {
namespace {

using client::ArgumentReader;
using client::ErrorKind;
using client::fail;
using client::number_into;
using client::Result;
using client::take_choice;
using client::take_switch;
using client::text_into;

constexpr long long many = std::numeric_limits<long long>::max();

// Unquotes an argument; nullopt: it is not a single word.
std::optional<std::string> one_word(const std::string& text) {
  auto words = split_words(text);
  if (!words || words->size() != 1) return std::nullopt;
  return std::move(words->front());
}

Result<bool> seconds_into(ArgumentReader& arguments, double& target) {
  const auto seconds = arguments.seconds(0, 1e9);
  if (!seconds) return std::unexpected(seconds.error());
  target = *seconds;
  return true;
}

Result<bool> quoted_pattern_into(ArgumentReader& arguments, std::string& target) {
  if (auto taken = text_into(arguments, target); !taken) return taken;
  auto word = one_word(target);
  if (!word) return fail(ErrorKind::usage, "Invalid quoted string specified for --quoted-pattern: " + target);
  target = std::move(*word);
  return true;
}

Result<bool> take_flag(ArgumentReader& arguments, Options& options) {
  const std::pair<std::string_view, Output> outputs[] = {{"--raw", Output::raw},
                                                         {"--no-raw", Output::formatted},
                                                         {"--csv", Output::csv},
                                                         {"--json", Output::json},
                                                         {"--quoted-json", Output::quoted_json}};
  const std::pair<std::string_view, Mode> modes[] = {{"--pipe", Mode::pipe},
                                                     {"--scan", Mode::scan},
                                                     {"--bigkeys", Mode::big_keys},
                                                     {"--memkeys", Mode::memory_keys},
                                                     {"--hotkeys", Mode::hot_keys},
                                                     {"--stat", Mode::stat},
                                                     {"--latency", Mode::latency},
                                                     {"--latency-history", Mode::latency_history},
                                                     {"--latency-dist", Mode::latency_spectrum},
                                                     {"--replica", Mode::follow},
                                                     {"--slave", Mode::follow},
                                                     {"--ldb", Mode::debug_script}};
  const std::pair<std::string_view, bool*> flags[] = {
      {"-x", &options.last_argument_from_stdin}, {"--quoted-input", &options.quoted_input},
      {"-e", &options.exit_with_error},          {"-c", &options.cluster},
      {"--askpass", &options.ask_password},      {"--help", &options.help},
      {"--version", &options.version},           {"-v", &options.version}};
  const std::pair<std::string_view, bool> warnings[] = {{"--no-auth-warning", false}};
  return take_choice(arguments, outputs, options.output) || take_choice(arguments, modes, options.mode) ||
         take_choice(arguments, warnings, options.warn_about_password) || take_switch(arguments, flags);
}

Result<bool> take_snapshot_file(ArgumentReader& arguments, Options& options) {
  options.snapshot.only_functions = arguments.is("--functions-rdb");
  options.mode = Mode::snapshot;
  return text_into(arguments, options.snapshot.file);
}

// As in redis-cli, the words up to the next option belong to it.
Result<bool> take_cluster_order(ArgumentReader& arguments, Options& options) {
  arguments.skip();
  while (!arguments.at_end() && !arguments.current().starts_with('-')) {
    options.cluster_order.push_back(arguments.current());
    arguments.skip();
  }
  if (options.cluster_order.empty())
    return fail(ErrorKind::usage, "option --cluster wants a command: weir-cli --cluster help lists them");
  options.mode = Mode::manage_cluster;
  return true;
}

Result<bool> take_mode_with_value(ArgumentReader& arguments, Options& options) {
  if (arguments.is("--verbose")) {  // of redis-cli; nothing has more to say here
    arguments.skip();
    return true;
  }
  if (arguments.is("--eval")) return text_into(arguments, options.script.file);
  if (arguments.is("--rdb") || arguments.is("--functions-rdb")) return take_snapshot_file(arguments, options);
  if (arguments.is("--cluster")) return take_cluster_order(arguments, options);
  if (arguments.is("--ldb-sync-mode")) {
    arguments.skip();
    options.mode = Mode::debug_script;
    options.script.debug_at_once = true;
    return true;
  }
  if (arguments.is("--intrinsic-latency")) {
    options.mode = Mode::own_latency;
    return seconds_into(arguments, options.measurement.own_latency_s);
  }
  if (arguments.is("--lru-test")) {
    options.mode = Mode::cache_test;
    return number_into(arguments, 1, many, options.measurement.cache_keys);
  }
  return false;
}

Result<bool> take_value(ArgumentReader& arguments, Options& options) {
  if (auto taken = take_mode_with_value(arguments, options); !taken || *taken) return taken;
  if (arguments.is("-r")) return number_into(arguments, -1, many, options.repeat);
  if (arguments.is("-i")) return seconds_into(arguments, options.interval_s);
  if (arguments.is("-d")) return text_into(arguments, options.delimiters.element);
  if (arguments.is("-D")) return text_into(arguments, options.delimiters.reply);
  if (arguments.is("-X")) return text_into(arguments, options.tag_for_stdin.emplace());
  if (arguments.is("--pattern")) return text_into(arguments, options.pattern);
  if (arguments.is("--quoted-pattern")) return quoted_pattern_into(arguments, options.pattern);
  if (arguments.is("--count")) return number_into(arguments, 1, many, options.scan_count);
  if (arguments.is("--memkeys-samples")) {
    options.mode = Mode::memory_keys;
    return number_into(arguments, 0, many, options.memory_samples.emplace());
  }
  if (arguments.is("--pipe-timeout")) return seconds_into(arguments, options.pipe_timeout_s);
  if (arguments.is("-n")) return number_into(arguments, 0, 1'000'000, options.server.login.database);
  if (arguments.is("--show-pushes")) {
    std::string word;
    if (auto taken = text_into(arguments, word); !taken) return taken;
    if (word.empty() || (word[0] != 'y' && word[0] != 'n'))
      return fail(ErrorKind::usage, "option --show-pushes wants yes or no, not '" + word + "'");
    options.show_pushes = word[0] == 'y';
    return true;
  }
  return false;
}

}  // namespace

Result<Options> parse_options(std::span<const std::string> arguments) {
  Options options;
  ArgumentReader reader(arguments);
  if (auto taken = client::take_options(reader, options, help_text, take_value, take_flag); !taken)
    return std::unexpected(std::move(taken.error()));
  options.command.assign(reader.rest().begin(), reader.rest().end());
  if (options.mode == Mode::debug_script && options.script.file.empty())
    return fail(ErrorKind::usage, "options --ldb and --ldb-sync-mode want a script: --eval <file>");
  if (options.last_argument_from_stdin && options.tag_for_stdin)
    return fail(ErrorKind::usage, "Options -x and -X are mutually exclusive: both want standard input");
  const bool json = options.output == Output::json || options.output == Output::quoted_json;
  if (json && options.server.login.resp == 0) options.server.login.resp = 3;
  return options;
}

bool unquote_command(Options& options) {
  if (!options.quoted_input) return true;
  for (auto& argument : options.command) {
    auto word = one_word(argument);
    if (!word) return false;
    argument = std::move(*word);
  }
  return true;
}

std::string help_text() {
  std::string text = R"help(Usage: weir-cli [OPTIONS] [COMMAND [ARG...]]

Talks to a Redis-protocol server over TCP, unix sockets, TLS, RDMA or TLS over RDMA. Without COMMAND it is interactive;
if standard input is not a terminal, it runs the lines it reads there.

  One command:
    $ weir-cli SET greeting hello
  Interactively, over RDMA:
    $ weir-cli --rdma
  Every key that starts with user:
    $ weir-cli --scan --pattern 'user:*'
  A value from a file:
    $ weir-cli -x SET picture < picture.png
  PING five times, half a second apart:
    $ weir-cli -r 5 -i 0.5 PING

Commands:
  -n <db>              database
  -r <times>           run COMMAND this many times; -1: forever
  -i <seconds>         wait between them (0.1 works)
  -x                   read the last argument from standard input
  -X <tag>             read the argument that is <tag> from standard input
  --quoted-input       arguments are quoted as at the prompt
  -e                   exit with 1 when the reply is an error
  -c                   follow a cluster's redirections to the node that has the key (MOVED, ASK), with the same
                       transport and login
  --eval <file>        run a Lua script; the words that follow are keys, a comma, and arguments
  --ldb                with --eval: debug the script in the server's debugger, whose changes are undone;
                       --ldb-sync-mode: the server waits meanwhile, and changes stay

Output:
  --raw, --no-raw      print replies as they are, or formatted (default: formatted on a terminal)
  --csv, --json, --quoted-json
  -d <text>, -D <text> with --raw: delimiter between elements, and after a reply
  --show-pushes <yes|no>

Other things to do:
  --pipe               send standard input, which is Redis protocol, unchanged; --pipe-timeout <s>
  --scan               list keys; --pattern <glob>, --quoted-pattern <glob>, --count <n>
  --bigkeys            look for the biggest keys
  --memkeys            look for the keys that take most memory; --memkeys-samples <n> elements of each are examined
  --hotkeys            look for the keys that are used most; the server needs an lfu policy (maxmemory-policy)
  --stat               a line of statistics each second
  --latency            measure round trips: on a terminal until stopped, else for one second (-i)
  --latency-history    a line of them each 15 seconds (-i)
  --latency-dist       a spectrum of them each second (-i)
  --intrinsic-latency <s>
                       how long this machine keeps a busy program waiting; asks no server
  --lru-test <keys>    measure hits of a cache of so many keys, 20 % of which get 80 % of the requests
  --rdb <file>         write a snapshot of the server's data to a file, or to standard output (-);
                       --functions-rdb: only its functions
  --replica            follow the server as a replica and print what it changes
  --cluster <command> [HOST:PORT] [ARG...]
                       ask all nodes of a cluster: call, check, info; help lists them
  --verbose            accepted, as redis-cli's
  --askpass            ask for the password
  --no-auth-warning    do not warn about -a

)help";
  text += client::server_options_help();
  text += R"help(
  --help, --version

Exit status: 0; 1 the options are invalid, there is no connection, standard output cannot be written, or, with -e, the
reply is an error.
)help";
  return text;
}

}  // namespace weir::shell

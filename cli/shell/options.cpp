#include "cli/shell/options.hpp"

#include <charconv>
#include <limits>
#include <utility>

#include "cli/shell/quoting.hpp"

namespace weir::shell {
namespace {

using client::ArgumentReader;
using client::ErrorKind;
using client::fail;
using client::Result;

Result<bool> text_into(ArgumentReader& arguments, std::string& target) {
  auto text = arguments.value();
  if (!text) return std::unexpected(std::move(text.error()));
  target = std::move(*text);
  return true;
}

Result<bool> seconds_into(ArgumentReader& arguments, double& target) {
  const auto option = arguments.current();
  auto text = arguments.value();
  if (!text) return std::unexpected(std::move(text.error()));
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), target);
  if (error != std::errc{} || end != text->data() + text->size() || !(target >= 0 && target < 1e9))
    return fail(ErrorKind::usage, "option " + option + " wants seconds, not '" + *text + "'");
  return true;
}

Result<bool> number_into(ArgumentReader& arguments, long long least, long long& target) {
  const auto number = arguments.number(least, std::numeric_limits<long long>::max());
  if (!number) return std::unexpected(number.error());
  target = *number;
  return true;
}

Result<bool> take_flag(ArgumentReader& arguments, Options& options) {
  const std::pair<std::string_view, Output> outputs[] = {{"--raw", Output::raw},
                                                         {"--no-raw", Output::formatted},
                                                         {"--csv", Output::csv},
                                                         {"--json", Output::json},
                                                         {"--quoted-json", Output::quoted_json}};
  for (const auto& [name, output] : outputs)
    if (arguments.is(name)) {
      options.output = output;
      arguments.skip();
      return true;
    }
  const std::pair<std::string_view, Mode> modes[] = {{"--pipe", Mode::pipe},
                                                     {"--scan", Mode::scan},
                                                     {"--bigkeys", Mode::big_keys},
                                                     {"--stat", Mode::stat},
                                                     {"--latency", Mode::latency}};
  for (const auto& [name, mode] : modes)
    if (arguments.is(name)) {
      options.mode = mode;
      arguments.skip();
      return true;
    }
  const std::pair<std::string_view, bool*> flags[] = {{"-x", &options.last_argument_from_stdin},
                                                      {"--quoted-input", &options.quoted_input},
                                                      {"-e", &options.exit_with_error},
                                                      {"--askpass", &options.ask_password},
                                                      {"--help", &options.help},
                                                      {"--version", &options.version},
                                                      {"-v", &options.version}};
  for (const auto& [name, target] : flags)
    if (arguments.is(name)) {
      *target = true;
      arguments.skip();
      return true;
    }
  if (arguments.is("--no-auth-warning")) {
    options.warn_about_password = false;
    arguments.skip();
    return true;
  }
  return false;
}

Result<bool> take_value(ArgumentReader& arguments, Options& options) {
  if (arguments.is("-r")) return number_into(arguments, -1, options.repeat);
  if (arguments.is("-i")) return seconds_into(arguments, options.interval_s);
  if (arguments.is("-d")) return text_into(arguments, options.delimiters.element);
  if (arguments.is("-D")) return text_into(arguments, options.delimiters.reply);
  if (arguments.is("-X")) return text_into(arguments, options.tag_for_stdin.emplace());
  if (arguments.is("--pattern")) return text_into(arguments, options.pattern);
  if (arguments.is("--count")) return number_into(arguments, 1, options.scan_count);
  if (arguments.is("--pipe-timeout")) return seconds_into(arguments, options.pipe_timeout_s);
  if (arguments.is("-n")) {
    const auto database = arguments.number(0, 1'000'000);
    if (!database) return std::unexpected(database.error());
    options.server.login.database = static_cast<int>(*database);
    return true;
  }
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
  while (!reader.at_end() && reader.current().starts_with('-')) {
    bool taken = false;
    for (const auto take : {take_value, take_flag}) {
      auto done = take(reader, options);
      if (!done) return std::unexpected(std::move(done.error()));
      if ((taken = *done)) break;
    }
    if (taken) continue;
    auto done = client::take_server_option(reader, options.server);
    if (!done) return std::unexpected(std::move(done.error()));
    if (!*done)
      return fail(ErrorKind::usage, "unknown option '" + reader.current() + "'; see weir-cli --help");
  }
  options.command.assign(reader.rest().begin(), reader.rest().end());
  const bool json = options.output == Output::json || options.output == Output::quoted_json;
  if (json && options.server.login.resp == 0) options.server.login.resp = 3;
  if (options.quoted_input)
    for (auto& word : options.command) {
      auto words = split_words(word);
      if (!words || words->size() != 1)
        return fail(ErrorKind::usage, "Invalid quoted string specified for argument: " + word);
      word = std::move(words->front());
    }
  return options;
}

std::string help_text() {
  std::string text = R"help(Usage: weir-cli [OPTIONS] [COMMAND [ARG...]]

Talks to a Redis-protocol server over TCP, unix sockets, TLS, RDMA or TLS over RDMA. Without COMMAND it is interactive;
when standard input is no terminal, it runs the lines it reads there.

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
  -r <times>           run COMMAND so many times; -1: for ever
  -i <seconds>         wait between them (0.1 works)
  -x                   read the last argument from standard input
  -X <tag>             read the argument that is <tag> from standard input
  --quoted-input       arguments are quoted as at the prompt
  -e                   exit with 1 when the reply is an error

Output:
  --raw, --no-raw      as it is, or formatted (default: formatted on a terminal)
  --csv, --json, --quoted-json
  -d <text>, -D <text> raw: what comes between elements, and after a reply
  --show-pushes <yes|no>

Other things to do:
  --pipe               send standard input, Redis protocol, as it is; --pipe-timeout <s>
  --scan               list keys; --pattern <glob>, --count <n>
  --bigkeys            look for the biggest keys
  --stat               a line of statistics each second
  --latency            measure round trips: on a terminal until stopped, else for one second (-i)
  --askpass            ask for the password
  --no-auth-warning    do not warn about -a

)help";
  text += client::server_options_help();
  return text;
}

}  // namespace weir::shell

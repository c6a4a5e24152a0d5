// weir-cli: talks to a Redis-protocol server over every available transport.
#include <fmt/core.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <system_error>
#include <thread>

#include "cli/client/standard_output.hpp"
#include "cli/shell/hints.hpp"
#include "cli/shell/interactive.hpp"
#include "cli/shell/quoting.hpp"
#include "cli/shell/tasks.hpp"
#include "screen/terminal.hpp"

namespace weir::shell {

namespace {

std::string all_of_standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

std::string asked_password() {
  fmt::print(stderr, "Please input password: ");
  termios before{};
  const bool terminal = ::tcgetattr(STDIN_FILENO, &before) == 0;
  auto silent = before;
  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  if (terminal) ::tcsetattr(STDIN_FILENO, TCSANOW, &silent);
  std::string word;
  std::getline(std::cin, word);
  if (terminal) ::tcsetattr(STDIN_FILENO, TCSANOW, &before);
  fmt::print(stderr, "\n");
  return word;
}

void look_into_environment(Options& options) {
  auto& server = options.server;
  const char* const password = std::getenv("WEIRCLI_AUTH");
  server.take_environment({password ? password : std::getenv("REDISCLI_AUTH"),
                           std::getenv("WEIR_RDMA_PROVIDER"), std::getenv("LD_LIBRARY_PATH")});
  if (options.ask_password) {
    server.login.password = asked_password();
  } else if (server.password_on_command_line && options.warn_about_password) {
    fmt::print(stderr,
               "Warning: Using a password with '-a' or '-u' option on the command line interface may not be "
               "safe.\n");
  }
}

// $WEIRCLI_HISTFILE, otherwise ~/.weircli_history; /dev/null means no history.
std::string history_file() {
  if (const char* named = std::getenv("WEIRCLI_HISTFILE"))
    return std::string_view(named) == "/dev/null" ? std::string{} : named;
  const char* const home = std::getenv("HOME");
  return home ? std::string(home) + "/.weircli_history" : std::string{};
}

int run_command(const Options& options, Conversation& conversation) {
  auto command = options.command;
  if (options.last_argument_from_stdin) command.push_back(all_of_standard_input());
  if (options.tag_for_stdin) {
    const auto tagged = std::ranges::find(command, *options.tag_for_stdin);
    if (tagged == command.end()) {
      fmt::print(stderr,
                 "weir-cli: stdin tag not match: no argument is {}, the tag of -X that standard input is to "
                 "replace\n",
                 quoted(*options.tag_for_stdin));
      return 1;
    }
    *tagged = all_of_standard_input();
  }
  if (same_word(command.front(), "help") || command.front() == "?") {
    fmt::print("{}", help_on({command.begin() + 1, command.end()}));
    return 0;
  }
  for (long long i = 0; options.repeat < 0 || i < options.repeat; ++i) {
    if (i > 0 && options.interval_s > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
    const auto outcome = conversation.run(command);
    if (outcome == Outcome::lost) return 1;
    if (outcome == Outcome::error_reply && options.exit_with_error) return 1;
  }
  return 0;
}

int run_task(const Options& options, Output output) {
  auto session = client::Session::open(options.server.endpoint(), client::Milliseconds{10'000});
  if (!session) return failed(session.error());
  if (auto greeted = (*session)->log_in(options.server.login); !greeted) return failed(greeted.error());
  switch (options.mode) {
    case Mode::pipe:
      return pipe_standard_input(**session, options);
    case Mode::scan:
      return scan_keys(**session, options, output);
    case Mode::big_keys:
      return find_big_keys(**session, options);
    case Mode::memory_keys:
      return find_memory_keys(**session, options);
    case Mode::hot_keys:
      return find_hot_keys(**session, options);
    case Mode::stat:
      return show_statistics(**session, options);
    case Mode::latency:
    case Mode::latency_history:
      return measure_latency(**session, options, output);
    case Mode::latency_spectrum:
      return show_latency_spectrum(**session, options);
    case Mode::cache_test:
      return test_cache(**session, options);
    case Mode::snapshot:
      return save_snapshot(**session, options);
    case Mode::follow:
      return follow_server(**session, options);
    case Mode::debug_script:
      return debug_script(**session, options, output);
    case Mode::own_latency:
    case Mode::manage_cluster:
    case Mode::command:
      break;
  }
  return 1;
}

int run(std::span<const std::string> arguments) {
  auto options = parse_options(arguments);
  if (!options) {
    fmt::print(stderr, "{}", screen::message(client::usage_complaint("weir-cli", options.error())));
    return 1;
  }
  if (options->help) {
    screen::print_wrapped(stdout, help_text());
    return 0;
  }
  if (options->version) {
    fmt::print("weir-cli {}\n", WEIR_VERSION);
    return 0;
  }
  if (!unquote_command(*options)) {
    fmt::print("Invalid quoted string\n");  // on standard output, as in redis-cli
    return 1;
  }
  look_into_environment(*options);
  // FAKETTY, as in redis-cli: format replies as on a terminal.
  const bool terminal_out = ::isatty(STDOUT_FILENO) == 1 || std::getenv("FAKETTY");
  const bool terminal_in = ::isatty(STDIN_FILENO) == 1;
  const auto output = options->output.value_or(terminal_out ? Output::formatted : Output::raw);
  if (options->mode == Mode::own_latency) return measure_own_latency(*options);
  if (options->mode == Mode::manage_cluster) return manage_cluster(*options);
  if (options->mode != Mode::command) return run_task(*options, output);
  if (!options->script.file.empty()) {
    auto request = eval_request(*options);
    if (!request) return failed(request.error());
    options->command = std::move(*request);
  }
  const bool interactive = options->command.empty() && terminal_in;
  Conversation conversation(*options, output, options->show_pushes.value_or(terminal_out), interactive);
  if (!options->command.empty()) return run_command(*options, conversation);
  return interactive ? converse_on_terminal(conversation, *options, history_file())
                     : run_lines(conversation, *options);
}

}  // namespace
}  // namespace weir::shell

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  try {
    return weir::client::output_arrived("weir-cli", weir::shell::run(arguments));
  } catch (const std::system_error& problem) {  // from fmt::print
    std::fprintf(stderr, "weir-cli: %s\n", problem.what());
    return 1;
  }
}

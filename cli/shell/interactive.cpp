#include "cli/shell/interactive.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <iostream>
#include <optional>

#include "cli/shell/hints.hpp"
#include "cli/shell/interrupt.hpp"
#include "cli/shell/line_editor.hpp"
#include "cli/shell/quoting.hpp"
#include "cli/shell/secret_lines.hpp"

namespace weir::shell {
namespace {

enum class Next { go_on, leave, lost };  // lost: a command for the server lost its connection

// Runs the shell's own commands. False: the command is for the server.
bool is_own_command(Conversation& conversation, const std::vector<std::string>& words, Next& next) {
  const auto& word = words.front();
  if (same_word(word, "quit") || same_word(word, "exit")) {
    next = Next::leave;
  } else if (word == "?" || same_word(word, "help")) {
    fmt::print("{}", help_on({words.begin() + 1, words.end()}));
  } else if (same_word(word, "clear") && words.size() == 1) {
    fmt::print("\x1b[H\x1b[2J");
  } else if (same_word(word, "connect") && words.size() == 3) {
    std::uint16_t port = 0;
    std::from_chars(words[2].data(), words[2].data() + words[2].size(), port);
    if (port == 0) {
      fmt::print(stderr, "connect wants a host and a port\n");
    } else {
      conversation.move_to(words[1], port);
      conversation.connect();
    }
  } else {
    return false;
  }
  return true;
}

// ":set hints" and ":set nohints", as in redis-cli.
bool is_preference(const std::vector<std::string>& words, LineEditor& editor) {
  if (words.front() != ":set") return false;
  const bool shown = words.size() == 2 && same_word(words[1], "hints");
  if (shown || (words.size() == 2 && same_word(words[1], "nohints")))
    editor.show_hints(shown);
  else
    fmt::print(stderr, ":set wants hints or nohints\n");
  return true;
}

Next run_line(Conversation& conversation, const Options& options, std::vector<std::string> words) {
  Next next = Next::go_on;
  if (is_own_command(conversation, words, next)) return next;
  const auto times = take_repeat(words);
  const auto began = std::chrono::steady_clock::now();
  std::optional<Interrupt> interrupt;
  if (conversation.interactive()) interrupt.emplace();
  auto outcome = Outcome::answered;
  for (long long i = 0; i < times && !Interrupt::came(); ++i) {
    outcome = conversation.run(words);
    if (outcome == Outcome::error_reply && options.exit_with_error) return Next::leave;
    if (outcome == Outcome::lost) {
      next = Next::lost;
      break;
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (outcome == Outcome::interrupted) return next;
  if (Interrupt::came()) fmt::print("\n");  // between two runs: give the prompt its own line
  if (took.count() >= 0.5 && conversation.output() == Output::formatted)
    fmt::print("({:.2f}s)\n", took.count());
  std::fflush(stdout);
  return next;
}

// Shows messages until the user types, or interrupts, which ends the subscriptions.
void watch_messages(Conversation& conversation) {
  const Interrupt interrupt;  // before the user is told about it
  fmt::print("Reading messages... (press Ctrl-C to quit or any key to type command)\n");
  std::fflush(stdout);
  while (conversation.subscribed() && !interrupt.came()) {
    pollfd keyboard{STDIN_FILENO, POLLIN, 0};
    if (::poll(&keyboard, 1, 0) > 0) break;
    if (!conversation.print_messages(client::Milliseconds{50})) break;
  }
  if (interrupt.came()) conversation.start_anew();
}

}  // namespace

int converse_on_terminal(Conversation& conversation, const Options& options,
                         const std::string& history_file) {
  conversation.connect();
  LineEditor editor(history_file);
  for (;;) {
    if (conversation.subscribed()) watch_messages(conversation);
    const auto line = editor.read(conversation.prompt());
    if (!line) return 0;
    auto words = split_words(*line);
    if (words && words->empty()) continue;
    if (!may_hold_secret(*line)) editor.remember(*line);
    if (!words) {
      fmt::print("Invalid argument(s)\n");
      continue;
    }
    if (is_preference(*words, editor)) continue;
    if (run_line(conversation, options, std::move(*words)) == Next::leave) return 0;
  }
}

int run_lines(Conversation& conversation, const Options& options) {
  for (std::string line; std::getline(std::cin, line);) {
    auto words = split_words(line);
    if (words && words->empty()) continue;
    if (!words) {
      fmt::print("Invalid argument(s)\n");
      continue;
    }
    const auto lost_before = !conversation.connected();
    const Next next = run_line(conversation, options, std::move(*words));
    if (next == Next::leave) return options.exit_with_error ? 1 : 0;
    if (next == Next::lost && lost_before) return 1;  // the server is gone: do not try again for each line
  }
  return 0;
}

}  // namespace weir::shell

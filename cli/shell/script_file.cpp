// --eval: a script in a file, with keys and arguments from the command line; with --ldb, in the server's
// debugger.
#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/client/standard_output.hpp"
#include "cli/shell/quoting.hpp"
#include "cli/shell/tasks.hpp"

namespace weir::shell {

client::Result<client::Arguments> eval_request(const Options& options) {
  std::ifstream file(options.script.file);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    return client::fail(client::ErrorKind::usage,
                        fmt::format("Can't open file '{}': {}", options.script.file, std::strerror(errno)));
  client::Arguments request{"EVAL", std::move(text), "0"};
  std::size_t keys = 0;
  bool are_keys = true;
  for (const std::string& word : options.command) {
    if (are_keys && word == ",") {
      are_keys = false;
      continue;
    }
    keys += are_keys ? 1 : 0;
    request.push_back(word);
  }
  request[2] = std::to_string(keys);
  return request;
}

namespace {

constexpr std::string_view end_of_session = "<endsession>";

// The debugger answers with lines of status. Prints them; true: the session has ended.
bool show_lines(const client::Reply& reply) {
  bool ended = false;
  for (const client::Reply& line : reply.elements) {
    ended |= line.text == end_of_session;
    if (line.text != end_of_session) fmt::print("{}\n", line.text);
  }
  if (!reply.is_aggregate()) fmt::print("{}\n", reply.text);
  return ended;
}

// Lua is passed on as it was typed, other lines as words. Empty: the line says nothing.
client::Arguments request_of(const std::string& line) {
  for (const std::string_view word : {"eval ", "e "})
    if (line.starts_with(word)) return {"eval", line.substr(word.size())};
  return split_words(line).value_or(client::Arguments{});
}

enum class After { end, restart };

client::Result<After> converse(client::Session& session) {
  for (std::string line;;) {
    fmt::print("lua debugger> ");
    client::flush_output();
    if (!std::getline(std::cin, line)) return After::end;
    const client::Arguments request = request_of(line);
    if (request.empty()) continue;
    if (same_word(request[0], "quit") || same_word(request[0], "exit")) return After::end;
    if (same_word(request[0], "restart")) return After::restart;
    const auto reply = session.ask(request);
    if (!reply) return std::unexpected(reply.error());
    if (show_lines(*reply)) return After::end;
  }
}

// One session: from the script's first line to its end, or until the user leaves it.
client::Result<After> debug_once(client::Session& session, const Options& options, Output output) {
  const client::Arguments mode{"SCRIPT", "DEBUG", options.script.debug_at_once ? "sync" : "yes"};
  const auto agreed = session.ask(mode);
  if (!agreed) return std::unexpected(agreed.error());
  if (agreed->is_error()) return client::fail(client::ErrorKind::refused, agreed->text);
  const auto request = eval_request(options);
  if (!request) return std::unexpected(request.error());
  fmt::print(
      "Lua debugging session started, please use:\nquit    -- End the session.\nrestart -- Restart the "
      "script in "
      "debug mode again.\nhelp    -- Show Lua script debugging commands.\n\n");
  const auto first = session.ask(*request);
  if (!first) return std::unexpected(first.error());
  bool ended = false;
  if (show_lines(*first)) {
    fmt::print("Eval debugging session can't start:\n");
    ended = true;
  } else {
    const auto after = converse(session);
    if (!after || *after == After::restart) return after;
    fmt::print("\n(Lua debugging session ended{})\n\n",
               options.script.debug_at_once ? "" : " -- dataset changes rolled back");
  }
  // The reply of EVAL itself follows the end of a session, unless the user has left it.
  if (const auto reply = session.next(client::Milliseconds(ended ? 1000 : 100)); reply)
    fmt::print("{}", reply_text(*reply, output, options.delimiters));
  return After::end;
}

}  // namespace

int debug_script(client::Session& first, const Options& options, Output output) {
  std::unique_ptr<client::Session> another;  // a restart needs a connection that debugs nothing yet
  for (client::Session* session = &first;;) {
    const auto after = debug_once(*session, options, output);
    if (!after) return failed(after.error());
    if (*after == After::end) return 0;
    auto opened = client::Session::open(options.server.endpoint(), client::Milliseconds{10'000});
    if (!opened) return failed(opened.error());
    if (auto greeted = (*opened)->log_in(options.server.login); !greeted) return failed(greeted.error());
    another = std::move(*opened);
    session = another.get();
  }
}

}  // namespace weir::shell

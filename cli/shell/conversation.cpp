#include "cli/shell/conversation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "cli/client/standard_output.hpp"
#include "cli/shell/interrupt.hpp"
#include "cli/shell/quoting.hpp"

namespace weir::shell {
namespace {

using client::Reply;
using client::ReplyType;
using client::Result;

constexpr client::Milliseconds connect_limit{10'000};
constexpr client::Milliseconds interrupt_interval{50};  // how often a wait checks for an interrupt

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [&](std::string_view name) { return same_word(word, name); });
}

bool starts_endless_stream(const std::vector<std::string>& command) {
  return is_one_of(command.front(), {"monitor", "sync", "psync"});
}

bool changes_subscriptions(const std::vector<std::string>& command) {
  return is_one_of(command.front(),
                   {"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"});
}

bool subscribes(const std::vector<std::string>& command) {
  return is_one_of(command.front(), {"subscribe", "psubscribe", "ssubscribe"});
}

}  // namespace

Conversation::Conversation(const Options& options, Output output, bool show_pushes, bool interactive)
    : options_(options),
      output_(output),
      show_pushes_(show_pushes),
      interactive_(interactive),
      endpoint_(options.server.endpoint()),
      login_(options.server.login) {
  database_ = login_.database;
}

bool Conversation::connect() {
  if (session_) return true;
  auto session = client::Session::open(endpoint_, connect_limit);
  if (!session) {
    say(session.error().what);
    return false;
  }
  in_transaction_ = false;
  subscriptions_ = 0;
  resp3_ = login_.resp == 3;
  auto login = login_;
  login.database = database_;
  // As in redis-cli, a refused login is reported, and the conversation continues without it.
  if (auto greeted = (*session)->log_in(login); !greeted) {
    say(greeted.error().what);
    if (greeted.error().kind != client::ErrorKind::refused) return false;
    if (greeted.error().what.starts_with("SELECT")) database_ = 0;
  }
  session_ = std::move(*session);
  return true;
}

void Conversation::disconnect() {
  session_.reset();
  in_transaction_ = false;
  subscriptions_ = 0;
}

void Conversation::start_anew() {
  fmt::print("\n");
  std::fflush(stdout);
  disconnect();
  connect();
}

void Conversation::move_to(const std::string& host, std::uint16_t port) {
  disconnect();
  endpoint_.host = host;
  endpoint_.port = port;
  if (endpoint_.transport == client::Transport::unix_socket) endpoint_.transport = client::Transport::tcp;
}

Outcome Conversation::run(const std::vector<std::string>& command) {
  const bool fresh = !session_;
  if (!connect()) return Outcome::lost;
  auto outcome = exchange_where_the_key_is(command);
  if (!outcome && outcome.error().kind == client::ErrorKind::closed &&
      same_word(command.front(), "shutdown")) {
    disconnect();
    return Outcome::answered;  // closing the connection is the reply
  }
  if (!outcome && outcome.error().kind == client::ErrorKind::closed && interactive_ && !fresh) {
    disconnect();  // the connection had gone while the user was idle
    if (!connect()) return Outcome::lost;
    outcome = exchange_where_the_key_is(command);
  }
  if (outcome) return *outcome;
  if (outcome.error().kind == client::ErrorKind::interrupted) {
    start_anew();
    return Outcome::interrupted;
  }
  say(outcome.error().what);
  disconnect();
  return Outcome::lost;
}

// With -c a node without the key names the node that has it. The conversation moves there, as in redis-cli.
Result<Outcome> Conversation::exchange_where_the_key_is(const std::vector<std::string>& command) {
  constexpr int most_redirects = 16;  // per command: nodes that disagree would redirect it for ever
  auto outcome = exchange(command);
  for (int redirects = 0; outcome && redirect_; ++redirects) {
    const auto redirect = *std::exchange(redirect_, std::nullopt);
    if (redirects == most_redirects) {
      say(fmt::format(
          "weir-cli: redirected {} times, the last time to {}; the nodes do not agree on who has slot {}: "
          "see CLUSTER NODES",
          redirects, redirect.to.text(), redirect.slot));
      return Outcome::error_reply;
    }
    const auto there = go_where(redirect);
    if (!there) return std::unexpected(there.error());
    if (!*there) return Outcome::lost;
    outcome = exchange(command);
  }
  return outcome;
}

// False: the node cannot be reached, and that was reported.
Result<bool> Conversation::go_where(const cluster::Redirect& redirect) {
  if (options_.command.empty())
    fmt::print("-> Redirected to slot [{}] located at {}\n", redirect.slot, redirect.to.text());
  move_to(redirect.to.host, redirect.to.port);
  if (!connect()) return false;
  if (!redirect.once) return true;
  const std::string asking[] = {"ASKING"};
  if (auto sent = session_->send(asking); !sent) return std::unexpected(std::move(sent.error()));
  auto reply = next_reply();
  if (!reply) return std::unexpected(std::move(reply.error()));
  return true;  // a refusal shows in the reply to the command
}

Result<Outcome> Conversation::exchange(const std::vector<std::string>& command) {
  if (auto sent = session_->send(command); !sent) return std::unexpected(std::move(sent.error()));
  if (starts_endless_stream(command) || (subscribes(command) && !interactive_))
    return watch_endless_stream(command);
  if (!changes_subscriptions(command)) return read_reply(command);
  // Each named channel is confirmed by its own message.
  auto outcome = Outcome::answered;
  for (std::size_t i = 1; i < std::max<std::size_t>(2, command.size()); ++i) {
    auto reply = next_reply();
    if (!reply) return std::unexpected(std::move(reply.error()));
    outcome = settle_reply(command, *reply);
    note_subscription(*reply);
    if (outcome == Outcome::error_reply) break;
  }
  client::flush_output();
  return outcome;
}

Result<Outcome> Conversation::read_reply(const std::vector<std::string>& command) {
  for (;;) {
    auto reply = next_reply();
    if (!reply) return std::unexpected(std::move(reply.error()));
    const bool message = reply->type == ReplyType::push;
    if (message) {
      print_push(*reply);
      continue;
    }
    const auto outcome = settle_reply(command, *reply);
    client::flush_output();
    return outcome;
  }
}

// A user at a terminal may interrupt the wait.
Result<Reply> Conversation::next_reply() {
  if (!interactive_) return session_->next();
  while (!Interrupt::came()) {
    auto reply = session_->poll(interrupt_interval);
    if (!reply) return std::unexpected(std::move(reply.error()));
    if (*reply) return std::move(**reply);
  }
  return client::fail(client::ErrorKind::interrupted, "interrupted");
}

// MONITOR, and SUBSCRIBE without a terminal: prints until the server or the user ends it.
Result<Outcome> Conversation::watch_endless_stream(const std::vector<std::string>& command) {
  if (subscribes(command) && output_ != Output::raw) std::puts("Reading messages... (press Ctrl-C to quit)");
  for (;;) {
    auto reply = next_reply();
    if (!reply) {
      if (reply.error().kind == client::ErrorKind::interrupted)
        return std::unexpected(std::move(reply.error()));
      say(reply.error().what);
      disconnect();
      return Outcome::lost;
    }
    const auto outcome = settle_reply(command, *reply);
    client::flush_output();
    if (outcome == Outcome::error_reply) return outcome;
  }
}

Outcome Conversation::settle_reply(const std::vector<std::string>& command, const Reply& reply) {
  if (options_.cluster && reply.is_error()) {
    redirect_ = cluster::read_redirect(reply.text, endpoint_.host);
    if (redirect_) return Outcome::answered;
  }
  if (reply.is_error() && options_.exit_with_error) {
    fmt::print(stderr, "{}\n", reply.text);
    return Outcome::error_reply;
  }
  print(reply, answers_in_prose(command));
  follow(command, reply);
  return reply.is_error() ? Outcome::error_reply : Outcome::answered;
}

// The effects of a successful command on later commands and on the prompt.
void Conversation::follow(const std::vector<std::string>& command, const Reply& reply) {
  const auto& word = command.front();
  if (same_word(word, "exec") || same_word(word, "discard")) {
    // A transaction refused as a whole is over, too; its SELECTs did not happen.
    if (in_transaction_ && (reply.is_error() || reply.type == ReplyType::null || same_word(word, "discard")))
      database_ = database_before_transaction_;
    if (!reply.is_error() || reply.text.starts_with("EXECABORT")) in_transaction_ = false;
    return;
  }
  if (reply.is_error()) return;
  if (same_word(word, "select") && command.size() == 2) {
    std::from_chars(command[1].data(), command[1].data() + command[1].size(), database_);
  } else if (same_word(word, "multi")) {
    in_transaction_ = true;
    database_before_transaction_ = database_;
  } else if (same_word(word, "auth") && command.size() >= 2) {
    login_.user = command.size() == 3 ? command[1] : std::string{};
    login_.password = command.back();
  } else if (same_word(word, "hello") && command.size() >= 2) {
    login_.resp = command[1] == "3" ? 3 : 2;
    resp3_ = login_.resp == 3;
  } else if (same_word(word, "reset")) {
    database_ = 0;
    login_.resp = 0;
    resp3_ = in_transaction_ = false;
    subscriptions_ = 0;
  }
}

std::string Conversation::prompt() const {
  if (!session_) return "not connected> ";
  auto text = address_of(endpoint_);
  if (database_ != 0) text += "[" + std::to_string(database_) + "]";
  if (in_transaction_) text += "(TX)";
  if (subscribed()) text += "(subscribed mode)";
  return text + "> ";
}

// [subscribe, channel, current number of subscriptions]
void Conversation::note_subscription(const Reply& message) {
  if (message.elements.size() != 3 || message.elements[2].type != ReplyType::integer) return;
  const auto& kind = message.elements[0].text;
  if (!kind.ends_with("subscribe")) return;
  const auto& text = message.elements[2].text;
  std::from_chars(text.data(), text.data() + text.size(), subscriptions_);
}

bool Conversation::print_messages(client::Milliseconds limit) {
  auto message = session_->poll(limit);
  for (; message && *message; message = session_->poll(client::Milliseconds{0})) {
    print(**message, false);
    note_subscription(**message);
  }
  client::flush_output();
  if (message) return true;
  say(message.error().what);
  disconnect();
  return false;
}

void Conversation::print(const Reply& reply, bool prose) {
  const auto text = reply_text(reply, output_, options_.delimiters, prose);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Conversation::print_push(const Reply& push) {
  if (!show_pushes_) return;
  const bool invalidation = output_ == Output::formatted && push.elements.size() == 2 &&
                            push.elements[0].text == "invalidate" &&
                            push.elements[1].type == ReplyType::array;
  if (!invalidation) return print(push, false);
  std::string keys;
  for (const auto& key : push.elements[1].elements)
    keys += (keys.empty() ? "" : ", ") + ("'" + key.text + "'");
  fmt::print("-> invalidate: {}\n", keys);
}

void Conversation::say(const std::string& what) const {
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", what);
}

}  // namespace weir::shell

// A conversation with a server, one question at a time: connect, ask, wait for the reply. For programs that
// talk to a server; load generation uses Connection directly.
//
// Threading: one thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/client/connection.hpp"
#include "cli/client/reply.hpp"

namespace weir::client {

// Our identity, sent at the start of every connection.
struct Login {
  std::string user;      // empty: the default user
  std::string password;  // empty: no AUTH
  int database = 0;
  int resp = 0;  // 2 or 3: send HELLO; 0: send nothing, which means 2
};

using Arguments = std::vector<std::string>;

// The commands that log in, in sending order; empty: nothing to send.
std::vector<Arguments> login_commands(const Login&);

class Session final : private ConnectionEvents {
 public:
  static constexpr Milliseconds forever{-1};

  static Result<std::unique_ptr<Session>> open(const Endpoint&, Milliseconds limit);
  ~Session();

  // Sends the login commands; an error reply to one of them is an error of kind refused.
  Result<void> log_in(const Login&);

  Result<Reply> ask(std::span<const std::string> command, Milliseconds limit = forever);
  // Sends all commands, then waits for their replies, which come in the same order.
  Result<std::vector<Reply>> ask_all(std::span<const Arguments> commands, Milliseconds limit = forever);
  Result<void> send(std::span<const std::string> command);
  Result<void> send_bytes(std::string_view bytes);

  // The next reply or push in order of arrival.
  Result<Reply> next(Milliseconds limit = forever);
  // Waits up to `limit` for bytes; then returns what next() would return without waiting, if anything.
  Result<std::optional<Reply>> poll(Milliseconds limit);

  // For the stream of a primary, which begins with no reply: from now on bytes are not parsed,
  // and next_bytes() returns what has arrived.
  void stop_parsing() { unparsed_.emplace(); }
  Result<std::string> next_bytes();
  // Replies follow again, the first of which begin with `bytes`.
  Result<void> parse_again(std::string_view bytes);

 private:
  Session() = default;
  void received(std::span<const std::byte>) override;
  void writable() override {}
  void ended(const Error&) override;

  std::unique_ptr<Reactor> reactor_;
  std::unique_ptr<Connection> connection_;
  ReplyParser parser_;
  std::optional<std::string> unparsed_;
  std::optional<Error> ended_;
};

}  // namespace weir::client

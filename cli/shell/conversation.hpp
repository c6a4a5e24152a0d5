// A user's conversation with a server: connects, runs commands, prints replies, and keeps what the prompt
// shows (database, transaction, subscriptions).
//
// Threading: one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/client/session.hpp"
#include "cli/shell/options.hpp"
#include "cluster/redirect.hpp"

namespace weir::shell {

enum class Outcome {
  answered,
  error_reply,  // the server replied with an error
  lost,         // no server, or it went away; reported on standard error
  interrupted,  // the user interrupted the wait (Interrupt); there is a new connection
};

class Conversation {
 public:
  // `output` is chosen by the caller, who knows whether there is a terminal.
  Conversation(const Options& options, Output output, bool show_pushes, bool interactive);

  // Connects if there is no connection; errors go to standard error.
  bool connect();
  bool connected() const { return session_ != nullptr; }
  void disconnect();
  void start_anew();  // abandons what the server is still doing and continues on a new line
  void move_to(const std::string& host, std::uint16_t port);  // the next connection goes there

  // Runs one command and prints the result. If the connection is found dead, connects again once.
  Outcome run(const std::vector<std::string>& command);

  // 127.0.0.1:6379[2](TX)>
  std::string prompt() const;

  bool subscribed() const { return subscriptions_ > 0; }
  // While subscribed: prints messages that arrive within `limit`. False: the connection was lost.
  bool print_messages(client::Milliseconds limit);

  client::Session* session() { return session_.get(); }
  Output output() const { return output_; }
  bool interactive() const { return interactive_; }

 private:
  client::Result<Outcome> exchange(const std::vector<std::string>& command);
  client::Result<Outcome> exchange_where_the_key_is(const std::vector<std::string>& command);
  client::Result<bool> go_where(const cluster::Redirect& redirect);
  client::Result<Outcome> read_reply(const std::vector<std::string>& command);
  client::Result<client::Reply> next_reply();
  client::Result<Outcome> watch_endless_stream(const std::vector<std::string>& command);
  Outcome settle_reply(const std::vector<std::string>& command, const client::Reply& reply);
  void follow(const std::vector<std::string>& command, const client::Reply& reply);
  void note_subscription(const client::Reply& message);
  void print(const client::Reply& reply, bool prose);
  void print_push(const client::Reply& push);
  void say(const std::string& what) const;

  const Options& options_;
  Output output_;
  bool show_pushes_;
  bool interactive_;
  client::Endpoint endpoint_;
  client::Login login_;
  std::unique_ptr<client::Session> session_;
  int database_ = 0;
  int database_before_transaction_ = 0;
  bool in_transaction_ = false;
  bool resp3_ = false;
  long long subscriptions_ = 0;                // to channels and patterns
  std::optional<cluster::Redirect> redirect_;  // with -c: where the last command must go instead
};

}  // namespace weir::shell

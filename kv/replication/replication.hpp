// What this server is to other servers: whom it follows, who follows it, and the history that they share.
//
// From the first replica on every change is written into the history (history.hpp), in the words in which
// Effects tells it. When the last replica has been gone for repl-backlog-ttl that ends.
//
// Threading: the server's one thread.
#pragma once

#include <asio/steady_timer.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/effects/effects.hpp"
#include "kv/replication/history.hpp"
#include "kv/replication/replicas.hpp"

namespace weir::kv {
struct Call;
}

namespace weir::kv::repl {

class Replication final : private EffectListener {
 public:
  explicit Replication(Server& server);
  ~Replication() override;

  Replicas& replicas() { return replicas_; }
  const Replicas& replicas() const { return replicas_; }
  History& history() { return history_; }
  const History& history() const { return history_; }

  // From now on changes are written into the history.
  void keep_history();
  // A message that was published, which changes nothing: replicas publish it, too.
  void published(int db, Arguments words);

  // Before queues are sent.
  void end_round() {
    if (history_.kept()) replicas_.pass_on();
  }
  // Does what is due by the clock.
  void look_at_clock();
  // Sees to it that this happens, once a second while there is anybody to look after.
  void watch_clock();

  // For INFO: names and values.
  std::vector<std::pair<std::string, std::string>> facts() const;
  void reply_role(const Call& call) const;

 private:
  void effect(int db, std::string_view request) override;
  void stop_history();

  Server& server_;
  History history_;
  Replicas replicas_;
  asio::steady_timer clock_timer_;
  bool clock_is_watched_ = false;
};

// As ids of servers and of histories are written: 40 hexadecimal digits.
std::string random_id(Server& server);

}  // namespace weir::kv::repl

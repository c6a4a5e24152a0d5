// This server's relation to other servers: which one it follows, which follow it, and the history that they
// share.
//
// While it follows another server the history is that server's, byte for byte. Otherwise, once a first
// replica has come, every change is written into the history (history.hpp), in the words in which Effects
// reports it. That stops when the last replica has been gone for repl-backlog-ttl.
//
// Threading: the server's one thread.
#pragma once

#include <asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/effects/effects.hpp"
#include "kv/replication/history.hpp"
#include "kv/replication/primary.hpp"
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

  // Follows another server from now on, or (stop_following) none: then the history continues under an id of
  // this server's own.
  void follow(std::unique_ptr<Primary> primary);
  void stop_following();
  bool follows() const { return link_ != nullptr; }
  const Primary* link() const { return link_.get(); }  // null: it follows nobody

  // Whether it follows a server and clients may not change its data.
  bool refuses_writes() const;
  static constexpr std::string_view writes_refused = "READONLY You can't write against a read only replica.";
  // Whether it does not know what the data is now and must not answer with what it was.
  bool refuses_stale_reads() const;

  // Ends all links; called before the server's connections go.
  void shut_down();

  // Before queues are sent.
  void end_round() {
    if (history_.kept()) replicas_.pass_on();
  }
  // Does what is due by the clock.
  void look_at_clock();
  // Makes sure that look_at_clock() runs once a second while there is a link or a replica to look after.
  void watch_clock();

  // For INFO: names and values.
  std::vector<std::pair<std::string, std::string>> facts() const;
  void reply_role(const Call& call) const;

 private:
  void effect(int db, std::string_view request) override;
  void listen(bool wanted);
  void stop_history();
  void retire_link();
  void unblock_all();
  void say_link(std::vector<std::pair<std::string, std::string>>& all) const;

  Server& server_;
  History history_;
  Replicas replicas_;
  asio::steady_timer clock_timer_;
  bool clock_is_watched_ = false;
  bool listens_ = false;                        // to Effects
  std::unique_ptr<Primary> link_;               // null: it follows nobody
  std::vector<std::unique_ptr<Primary>> past_;  // closed in the midst of a round
};

// As ids of servers and of histories are written: 40 hexadecimal digits.
std::string random_id(Server& server);

}  // namespace weir::kv::repl

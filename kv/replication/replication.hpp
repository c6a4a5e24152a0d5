// This server's relation to others: the primary that it follows, the replicas that follow it,
// and their common history.
//
// While it follows a primary, the history is the primary's, byte for byte. Otherwise, once the first replica
// has come, every change is appended to the history (history.hpp) in the words that Effects reports. That
// ends when the last replica has been gone for repl-backlog-ttl.
//
// Threading: the server's one thread.
#pragma once

#include <asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/core/history.hpp"
#include "kv/core/primary.hpp"
#include "kv/effects/effects.hpp"
#include "kv/replication/failover.hpp"
#include "kv/replication/replicas.hpp"
#include "kv/replication/shutdown.hpp"

namespace weir::kv {
struct Call;
}

namespace weir::kv::repl {

class Replication final : private EffectListener {
 public:
  Replication(ServerCommon& server, ServerWhole& whole, Effects& effects, Blocking& blocking,
              Snapshots& snapshots);
  ~Replication() override;

  Replicas& replicas() { return replicas_; }
  const Replicas& replicas() const { return replicas_; }
  History& history() { return history_; }
  const History& history() const { return history_; }
  Failover& failover() { return failover_; }
  Shutdown& shutdown() { return shutdown_; }

  // From now on changes are appended to the history.
  void keep_history();
  // The data that was loaded at the start is that of this place. A server that follows another asks it for
  // what came later. Any other continues the history under an id of its own, because others may have
  // continued it as well; its replicas of before need nothing but what comes now.
  void restore_history(const PlaceInHistory& place);
  // A published message changes no data, but replicas must publish it, too.
  void published(int db, Arguments words);

  // Follows another server from now on, or (stop_following) none. Then the history continues
  // under this server's own id.
  void follow(std::unique_ptr<Primary> primary);
  void stop_following();
  bool follows() const { return link_ != nullptr; }
  const Primary* link() const { return link_.get(); }  // null: it follows no server
  Primary* link() { return link_.get(); }

  // Why clients may not change the data: it follows a server, or too few replicas are in touch
  // (min-replicas-to-write). Empty: they may.
  std::string_view write_refusal() const;
  // Whether the current data is unknown and the old data must not be shown.
  bool refuses_stale_reads() const;

  // Ends all links; call before the server's connections go.
  void shut_down();

  // Call before queues are sent.
  void end_round() {
    if (history_.kept()) replicas_.pass_on();
  }
  // Does whatever is due.
  void look_at_clock();
  // Ensures that look_at_clock() runs once a second while there is a link or a replica.
  void watch_clock();

  // Names and values, for INFO.
  std::vector<std::pair<std::string, std::string>> facts() const;
  void reply_role(const Call& call) const;

 private:
  void effect(int db, std::string_view request) override;
  void listen(bool wanted);
  void stop_history();
  void retire_link();
  void unblock_all();
  bool wants_replicas_in_touch() const;
  void say_link(std::vector<std::pair<std::string, std::string>>& all) const;

  ServerCommon& server_;
  ServerWhole& whole_;
  Effects& effects_;
  Blocking& blocking_;
  History& history_;
  Replicas replicas_;
  Failover failover_;
  Shutdown shutdown_;
  asio::steady_timer clock_timer_;
  bool clock_is_watched_ = false;
  bool listens_ = false;                        // registered with Effects
  std::unique_ptr<Primary> link_;               // null: it follows no server
  std::vector<std::unique_ptr<Primary>> past_;  // links closed during a round
};

}  // namespace weir::kv::repl

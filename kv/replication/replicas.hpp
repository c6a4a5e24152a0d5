// The replicas of this server: how they join, what they are sent, and which clients wait
// for their confirmation.
//
// A replica whose position is still kept here is sent the rest of the history. Any other replica is
// first sent a snapshot (full_sync.hpp), then what was added to the history since the snapshot
// began. All replicas get the same bytes: each has a position, and the bytes after it move to its
// queue in pieces, as fast as the transport takes them. So the history is in memory only once,
// however many replicas are behind.
//
// Bounded: client-output-buffer-limit replica limits what waits for a replica, in its queue and in the
// history. A replica that sends and takes nothing for repl-timeout is closed. Beyond repl-backlog-size only
// bytes that a replica still needs are kept.
//
// Threading: the server's one thread.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kv/core/history.hpp"
#include "kv/replication/full_sync.hpp"

namespace weir::kv {
class Blocking;
class ServerWhole;
class Snapshots;
}  // namespace weir::kv

namespace weir::kv::repl {

// The address where a replica listens: as it reported, or its source address without that port.
std::string replica_address(const Client& replica);

class Replicas {
 public:
  // `keep_history` is called before the first replica needs one.
  Replicas(ServerCommon& server, ServerWhole& whole, Blocking& blocking, Snapshots& snapshots,
           std::function<void()> keep_history);
  ~Replicas() { abandon_full_sync(); }
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  // PSYNC: the client becomes a replica. It has the history `id` up to `position`;
  // empty id: it has none.
  void follow(Client& client, std::string_view id, std::int64_t position);
  // REPLCONF ACK and FACK: the replica has applied the history up to `position`, and its disk has it up to
  // `synced` (-1: it does not say).
  void acknowledged(Client& client, std::int64_t position, std::int64_t synced);
  // The replica disconnects or no longer follows.
  void leave(Client& client);
  // Closes all replicas, because their data differs from this server's.
  void close_all();

  // Call before queues are sent: passes additions to the history on to the replicas.
  void pass_on();
  // Its queue has been sent.
  void drained(Client& client);
  // Closes replicas that are too late, pings the others, and begins waiting synchronizations.
  // Called about once a second.
  void look_at_clock();

  std::size_t size() const { return all_.size(); }
  const std::vector<Client*>& all() const { return all_; }
  // How many replicas have applied the history up to `position`.
  std::int64_t count_acknowledged(std::int64_t position) const;
  // How many replicas have the history up to `position` on their disks.
  std::int64_t count_synced(std::int64_t position) const;
  // How many replicas receive changes and have confirmed any within min-replicas-max-lag.
  std::int64_t count_in_touch() const;
  // Resumes the client, which is blocked in WAIT or WAITAOF, once enough replicas have confirmed.
  void wait_for(const Client& client);
  // When the last replica left; 0: there are replicas.
  std::int64_t alone_since_ms() const { return alone_since_ms_; }
  void alone_from_now();
  // The replicas that have not confirmed the history up to `position`, though they are to.
  std::vector<Client*> lagging(std::int64_t position) const;
  // A resting history gets no more pings and questions of this server, so that a replica can have all of it.
  // The last question is for that.
  void let_history_rest(bool rests);
  std::function<void()> on_moved;  // a replica has confirmed something, or has left; may be empty

  // Memory of the replicas' queues, of a snapshot on its way there, and of what the history keeps beyond
  // repl-backlog-size because a replica is behind.
  std::size_t memory() const;

  void reset_counts() { full_syncs_ = partial_syncs_ = refused_partial_syncs_ = 0; }
  std::uint64_t full_syncs() const { return full_syncs_; }
  std::uint64_t partial_syncs() const { return partial_syncs_; }
  std::uint64_t refused_partial_syncs() const { return refused_partial_syncs_; }

 private:
  void continue_from(Client& client, std::int64_t position);
  void begin_full_sync();
  void take_turn();
  void rest(std::int64_t us);
  void full_sync_over();
  void abandon_full_sync();
  void fill(Client& client);
  std::size_t unsent(const Client& client) const;
  bool limit(Client& client);
  void look_at(Client& client);
  void close(Client& client, std::string_view why);
  void answer_waiting();
  bool enough_confirmed(const Client& client) const;

  ServerCommon& server_;
  ServerWhole& whole_;
  Blocking& blocking_;
  Snapshots& snapshots_;
  History& history_;
  const std::function<void()> keep_history_;
  std::vector<Client*> all_;
  std::unique_ptr<FullSync> full_sync_;
  asio::steady_timer turn_timer_;
  absl::flat_hash_set<std::uint64_t> waiting_;  // clients in WAIT or WAITAOF; some may have continued
  bool asks_for_acknowledgement_ = false;
  bool history_rests_ = false;
  std::int64_t pinged_ms_ = 0;
  std::int64_t alone_since_ms_ = 0;
  std::uint64_t full_syncs_ = 0, partial_syncs_ = 0, refused_partial_syncs_ = 0;
};

}  // namespace weir::kv::repl

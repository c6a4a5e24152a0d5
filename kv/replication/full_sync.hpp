// Sends one snapshot to one or several replicas, in turns with the server's other work.
//
// To replicas that say "capa eof" it is a bulk string without a length: "$EOF:" with a mark of 40 characters,
// the data, the mark again. Encoded data joins the replicas' queues at once. For others it is a bulk string
// whose length comes first, so the data is kept in a file until all of it is encoded, and then sent.
//
// While the slowest replica has much unsent, the turns pause. Data that clients change meanwhile cannot wait;
// it counts towards client-output-buffer-limit.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kv/persistence/snapshot.hpp"
#include "kv/replication/snapshot_spool.hpp"
#include "kv/text/heap.hpp"

namespace weir::kv {
class Client;
}  // namespace weir::kv

namespace weir::kv::repl {

class FullSync {
 public:
  // `walk` is the number of the walk through the databases (Snapshots::lend_walk). The clients
  // are replicas that wait, all of the same form.
  FullSync(SnapshotSource source, std::uint32_t walk, std::vector<Client*> to);

  // Works for half a millisecond. Returns how many microseconds to pause before the next turn; nullopt once
  // everything has joined the replicas' queues, or if that is impossible.
  std::optional<std::int64_t> take_turn();
  // Why it is impossible; empty: it is possible.
  std::string failure() const { return spool_ ? spool_->failure() : std::string(); }
  const std::vector<Client*>& receivers() const { return to_; }

  // As much may wait in a replica's queue because of the turns; more waits there only because clients changed
  // data meanwhile.
  std::size_t most_ahead() const;
  // Its own; what it has sent is in the replicas' queues.
  std::size_t memory() const { return snapshot_.memory() + heap_size(bytes_); }

  void leave(const Client& client) { std::erase(to_, &client); }
  bool for_nobody() const { return to_.empty(); }

 private:
  void send(std::string_view bytes);
  bool step();
  bool send_some_of_spool();
  void finish();
  std::size_t most_unsent() const;

  ServerCommon& server_;
  std::vector<Client*> to_;
  std::string mark_;
  std::optional<SnapshotSpool> spool_;  // for replicas that take no end mark
  enum class Part : std::uint8_t { encodes, sends_spool } part_ = Part::encodes;
  std::uint64_t sum_ = 0;
  std::string bytes_;
  std::uint64_t sent_ = 0;
  std::size_t largest_step_ = 0;
  Snapshot snapshot_;
};

}  // namespace weir::kv::repl

// Sends one snapshot to one or several replicas, in turns with the server's other work.
//
// It is a bulk string without a length: "$EOF:" with a mark of 40 characters, the data, the mark again.
// Encoded data joins the replicas' queues at once; while the slowest has much unsent, the turns pause. Data
// that clients change meanwhile cannot wait; it counts towards client-output-buffer-limit.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kv/persistence/snapshot.hpp"

namespace weir::kv {
class Client;
}  // namespace weir::kv

namespace weir::kv::repl {

class FullSync {
 public:
  // `walk` is the number of the walk through the databases (Snapshots::lend_walk). The clients
  // are replicas that wait.
  FullSync(SnapshotSource source, std::uint32_t walk, std::vector<Client*> to);

  // Encodes for half a millisecond. Returns how many microseconds to pause before the next turn; nullopt once
  // everything has joined the replicas' queues.
  std::optional<std::int64_t> take_turn();

  void leave(const Client& client) { std::erase(to_, &client); }
  bool for_nobody() const { return to_.empty(); }

 private:
  void send(std::string_view bytes);
  void finish();
  std::size_t most_unsent() const;

  ServerCommon& server_;
  std::vector<Client*> to_;
  std::string mark_;
  std::uint64_t sum_ = 0;
  std::string bytes_;
  Snapshot snapshot_;
};

}  // namespace weir::kv::repl

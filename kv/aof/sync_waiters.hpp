// Clients of WAITAOF: each waits until the log is on the disk up to its position, or until a timeout.
//
// A waiting client is blocked (kv/clients/blocking.hpp) without a key, and its position is kept here. It may
// end or be unblocked meanwhile, so its number identifies it. A log that cannot be synced may serve nobody
// for days, so stale entries are removed whenever their number could have doubled.
//
// Threading: the server's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

namespace weir::kv {
class Client;
class ServerParts;
}  // namespace weir::kv

namespace weir::kv::aof {

class SyncWaiters {
 public:
  // Adds a client blocked by its WAITAOF. Positions never decrease from one call to the next.
  void add(ServerParts& server, const Client& client);
  // Clients whose position is reached continue, or wait for replicas if they asked for some.
  void serve(ServerParts& server, std::uint64_t synced);
  // The log is off: no client will get what it waits for.
  void fail(ServerParts& server, std::string_view error);
  bool any() const { return !waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    std::uint64_t client;
    std::uint64_t position;
  };
  static Client* still_there(ServerParts& server, const Waiting& one);

  std::deque<Waiting> waiting_;
  std::size_t sort_out_at_ = 64;  // remove stale entries at this size
};

}  // namespace weir::kv::aof

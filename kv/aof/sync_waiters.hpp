// Clients of WAITAOF: each waits until the log is on the disk up to its position, or until its time is up.
//
// A waiting client is blocked (kv/server/blocking.hpp) without a key; its reason is kept here. It may end or
// be unblocked meanwhile, so it is identified by its number. A log that cannot be synced may serve nobody for
// days, so entries of clients that no longer wait are dropped whenever their number could have doubled.
//
// Threading: the server's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

namespace weir::kv {
class Client;
class Server;
}  // namespace weir::kv

namespace weir::kv::aof {

class SyncWaiters {
 public:
  // Adds a client that is blocked by its WAITAOF. Positions do not fall from one call to the next.
  void add(Server& server, const Client& client);
  // Answers the clients whose position is reached; they continue.
  void serve(Server& server, std::uint64_t synced);
  // The log is off: none of the clients will get what it waits for.
  void fail(Server& server, std::string_view error);
  bool any() const { return !waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    std::uint64_t client;
    std::uint64_t position;
  };
  static Client* still_there(Server& server, const Waiting& one);

  std::deque<Waiting> waiting_;
  std::size_t sort_out_at_ = 64;  // entries
};

}  // namespace weir::kv::aof

// Clients of WAITAOF: each waits until so much of the log is on the disk, or until its time is up.
//
// A client that waits is blocked (kv/server/blocking.hpp) without a key; here stands what for. It may end or
// be unblocked meanwhile, so it is known by its number. Threading: the server's one thread.
#pragma once

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
  // The client, which is blocked by its WAITAOF. Positions do not fall from one call to the next.
  void add(const Client& client);
  // Answers those whose position is reached; they go on.
  void serve(Server& server, std::uint64_t synced);
  // The log is off: none of them will get what it waits for.
  void fail(Server& server, std::string_view error);
  bool any() const { return !waiting_.empty(); }

 private:
  struct Waiting {
    std::uint64_t client;
    std::uint64_t position;
  };
  static Client* still_there(Server& server, const Waiting& one);

  std::deque<Waiting> waiting_;
};

}  // namespace weir::kv::aof

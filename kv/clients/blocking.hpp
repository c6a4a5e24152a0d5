// Clients that wait for a key to get elements, first come, first served. Also clients of WAIT and WAITAOF,
// only for their deadlines (kv/replication and kv/aof handle confirmations), and of MIGRATE (kv/migration).
//
// A blocking command that finds nothing parks its client with its keys and deadline. If a key changes
// while a client waits for it, the key is noted. When the command (or the whole transaction) that changed
// it is over, the waiting commands are tried again in their order of arrival, and those that succeed
// continue. A client keeps its place in each queue, and a key is served until it is empty. So leaving a
// queue or pushing an element costs the same however many clients wait. Readers of a stream do not empty
// it, so each of them is tried.
//
// Threading: the server's one thread.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "hash/keyed.hpp"
#include "kv/clients/blocked_on.hpp"

namespace weir::kv {

class Client;
class Keyspace;
struct ServerCommon;
struct Command;

// What waiting clients ask of the server.
class BlockingHost {
 public:
  // Tries a blocked command again, for `key`. Returns false if it must still wait; then there was no reply.
  virtual bool retry_blocked(Client& client, const BlockedOn& on, std::string_view key) = 0;
  // Replies what the client's command replies when its time is up.
  virtual void answer_in_vain(Client& client) = 0;
  // The client waits no longer in this command.
  virtual void released(Client& client, const Command& command) = 0;
  // There is a new deadline.
  virtual void arm_timer() = 0;

 protected:
  ~BlockingHost() = default;
};

class Blocking {
 public:
  Blocking(ServerCommon& server, BlockingHost& host) : server_(server), host_(host) {}

  std::size_t size() const { return waiting_; }
  bool any() const { return waiting_ != 0; }
  void block(Client& client, BlockedOn on, std::vector<std::string> keys);
  // Takes the client out of every queue, so that it can continue.
  void release(Client& client);
  // Answers that nothing came, and lets the client continue.
  void give_up(Client& client);
  // Ends the client's command with an error, which counts as an error of that command. Call release() next.
  void fail(Client& client, std::string_view error);
  // A key changed.
  void signal(int db, std::string_view key);
  // The whole database changed.
  void signal_all(Keyspace& db);
  // Whether a noted key may serve a waiting client.
  bool ready() const { return !ready_.empty(); }
  // Tries the waiting commands of the noted keys.
  void serve();
  // Answers the clients whose time is up. Returns the next deadline; 0: none.
  std::int64_t expire(std::int64_t now_ms);
  std::int64_t next_deadline_ms() const { return deadlines_.empty() ? 0 : deadlines_.begin()->first; }

 private:
  using Key = std::pair<int, std::string>;
  struct Queue {
    std::list<Client*> clients;
    std::size_t need_the_key = 0;  // clients that continue with an error when the key goes
    bool noted = false;            // listed in ready_
  };

  void serve(const Key& key);

  ServerCommon& server_;
  BlockingHost& host_;
  absl::flat_hash_map<Key, Queue, hash::Keyed> queues_;
  absl::btree_set<std::pair<std::int64_t, Client*>> deadlines_;
  std::deque<Key> ready_;
  std::size_t waiting_ = 0;
};

}  // namespace weir::kv

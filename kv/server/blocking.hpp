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
#include "kv/bytes.hpp"

namespace weir::kv {

class Client;
class Keyspace;
class Server;
struct Command;

// What a client is waiting for.
struct BlockedOn {
  struct Place {
    std::string key;
    std::list<Client*>::iterator in_queue;
  };

  const Command* command;  // run again, unchanged, when one of the keys may serve it
  std::vector<Bytes> words;
  std::vector<Place> places;  // one per key
  int db = 0;
  std::int64_t deadline_ms = 0;    // 0: for ever
  std::int64_t replicas = 0;       // WAIT, WAITAOF: how many must confirm
  std::int64_t position = 0;       // up to which position of the history; for WAITAOF, on their disks
  std::uint64_t log_position = 0;  // WAITAOF: up to which position of this server's log
};

class Blocking {
 public:
  explicit Blocking(Server& server) : server_(server) {}

  std::size_t size() const { return waiting_; }
  bool any() const { return waiting_ != 0; }
  void block(Client& client, BlockedOn on, std::vector<std::string> keys);
  // Takes the client out of every queue, so that it can continue.
  void release(Client& client);
  // Answers that nothing came, and lets the client continue.
  void give_up(Client& client);
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

  Server& server_;
  absl::flat_hash_map<Key, Queue, hash::Keyed> queues_;
  absl::btree_set<std::pair<std::int64_t, Client*>> deadlines_;
  std::deque<Key> ready_;
  std::size_t waiting_ = 0;
};

}  // namespace weir::kv

// Clients that wait for a key to get elements, first come first served; and those of WAIT and WAITAOF, only
// for their deadlines (confirmations are in kv/replication and kv/aof).
//
// A blocking command that finds nothing parks its client with the keys it wants and the deadline. When a key
// changes while a client waits for it, the key is noted. Once the command (or the whole transaction) that
// changed it is over, the waiting commands are tried again in the order in which they came, and those that
// succeed continue. A client's place in each queue is kept with it, and a key is served until it is empty, so
// the number of waiting clients adds no cost to leaving a queue or to pushing an element. Readers of a stream
// do not empty it: each of them is tried.
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

// What a client waits for.
struct BlockedOn {
  struct Place {
    std::string key;
    std::list<Client*>::iterator in_queue;
  };

  const Command* command;  // run again, as it was sent, when one of the keys may serve it
  std::vector<Bytes> words;
  std::vector<Place> places;  // one for each key
  int db = 0;
  std::int64_t deadline_ms = 0;  // 0: for ever
  std::int64_t replicas = 0;     // WAIT: so many have to confirm
  std::int64_t position = 0;     // that they have the history up to there; WAITAOF: of the log
};

class Blocking {
 public:
  explicit Blocking(Server& server) : server_(server) {}

  std::size_t size() const { return waiting_; }
  bool any() const { return waiting_ != 0; }
  void block(Client& client, BlockedOn on, std::vector<std::string> keys);
  // Takes the client out of every queue, so it can continue.
  void release(Client& client);
  // Answers that nothing came; the client continues.
  void give_up(Client& client);
  // A key changed.
  void signal(int db, std::string_view key);
  // The whole database changed.
  void signal_all(Keyspace& db);
  // Whether any noted key may serve a waiting client.
  bool ready() const { return !ready_.empty(); }
  // Tries the waiting commands of noted keys.
  void serve();
  // Answers clients whose time is up; returns the next deadline, 0 if there is none.
  std::int64_t expire(std::int64_t now_ms);
  std::int64_t next_deadline_ms() const { return deadlines_.empty() ? 0 : deadlines_.begin()->first; }

 private:
  using Key = std::pair<int, std::string>;
  struct Queue {
    std::list<Client*> clients;
    std::size_t need_the_key = 0;  // how many of them go on, with an error, when the key goes
    bool noted = false;            // in ready_
  };

  void serve(const Key& key);

  Server& server_;
  absl::flat_hash_map<Key, Queue, hash::Keyed> queues_;
  absl::btree_set<std::pair<std::int64_t, Client*>> deadlines_;
  std::deque<Key> ready_;
  std::size_t waiting_ = 0;
};

}  // namespace weir::kv

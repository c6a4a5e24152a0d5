// CLIENT TRACKING: which clients cache which keys, and how they learn that a key has changed.
//
// By default the server remembers each key that a tracking client reads, with the clients that read it. The
// first change of the key notifies them all and forgets the key. In BCAST mode nothing is remembered: the
// client names prefixes, and once per round hears of every changed key that begins with one of them.
//
// Bounded: at most tracking-table-max-keys keys are remembered. Beyond that a random key is forgotten, and
// its clients are told as if it had changed; after the limit was lowered, some at a time. Before a key's list
// of clients grows, clients that have gone are removed from it. The pending keys of a BCAST client are those
// that one round changed.
//
// A client is told of changes by its own command after the reply, never within it.
//
// Threading: the server's one thread.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/inlined_vector.h>
#include <absl/container/node_hash_map.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hash/keyed.hpp"
#include "kv/clients/tracking_mode.hpp"
#include "kv/command/command.hpp"
#include "kv/text/text_hash.hpp"

namespace weir::kv {

class Client;
struct ServerCommon;

class Tracking {
 public:
  explicit Tracking(ServerCommon& server) : server_(server) {}

  bool any() const { return clients_ != 0; }
  // Adds `mode`'s prefixes to those that the client has.
  void enable(Client& client, const TrackingMode& mode);
  void disable(Client& client);

  // The client has run a command, alone or in a script. If it read, its keys are remembered. If a script has
  // read, the keys that it declared are remembered too, as in Redis 7.0.
  void ran(Client& client, const Command& command, Arguments arguments);
  // A key changed, through any client. If it went by itself, BCAST clients hear nothing.
  void changed(std::string_view key);
  void forget_key(std::string_view key);
  // Every key may have changed.
  void flushed();
  // More keys are remembered than tracking-table-max-keys, which was lowered.
  bool too_full() const;
  void forget_some(std::size_t most);

  // The client's command is over: sends what was held back.
  void command_over(Client& client);
  // The round is over: tells BCAST clients of its changes.
  void end_round();

  std::size_t clients() const { return clients_; }
  std::size_t keys() const { return order_.size(); }
  std::size_t items() const { return items_; }
  std::size_t prefixes() const { return prefixes_.size(); }

 private:
  struct Readers {
    absl::InlinedVector<std::uint64_t, 2> ids;  // sorted
    std::size_t place = 0;                      // in order_
  };
  using Table = absl::node_hash_map<std::string, Readers, hash::Keyed, std::equal_to<>>;
  struct Prefix {
    std::vector<std::uint64_t> clients;
    // The changed keys, and the client that changed each last; 0: not by a command of a client.
    absl::btree_map<std::string, std::uint64_t> changed;
  };
  // Null: all keys.
  using Keys = std::optional<std::vector<std::string_view>>;

  void remember(Client& client, const Command& command, Arguments arguments);
  void remember(std::uint64_t client, std::string_view key);
  void drop_gone(Readers& readers);
  void forget(Table::iterator key);
  void send_pending();
  void tell(Client& client, const Keys& keys);
  void send_or_hold(Client& client, std::optional<std::string_view> key);
  Client* find(std::uint64_t id) const;
  Client* receiver(Client& client);
  bool is_being_answered(const Client& client) const;

  ServerCommon& server_;
  std::size_t clients_ = 0;
  std::size_t items_ = 0;
  Table table_;
  std::vector<Table::value_type*> order_;  // all keys, unordered, to pick a random one
  TextMap<Prefix> prefixes_;
  absl::btree_map<std::size_t, std::size_t> lengths_;  // the lengths of prefixes, with their number
  bool broadcasts_ = false;                            // some Prefix has changed keys
  std::vector<std::pair<std::uint64_t, std::optional<std::string>>> pending_;
};

}  // namespace weir::kv

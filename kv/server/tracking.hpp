// CLIENT TRACKING: which clients cache which keys, and how they are told when a key changes.
//
// By default the keys that a tracking client reads are remembered, each with the clients that read it; the
// first change of a key tells them all and forgets the key. In BCAST mode nothing is remembered: the client
// names prefixes and is told, once a round, of every changed key that begins with one of them.
//
// Bounded: at most tracking-table-max-keys keys are remembered; beyond that a random key is forgotten, and
// its clients are told as if it had changed. A key's list of clients is cleared of clients that have gone
// before it grows. The keys that a BCAST client will be told of are those that one round changed.
//
// A client whose own command is being answered is told of changes after that answer, never within it.
//
// Threading: the server's one thread.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/inlined_vector.h>
#include <absl/container/node_hash_map.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hash/keyed.hpp"
#include "kv/commands/command.hpp"
#include "kv/text_hash.hpp"

namespace weir::kv {

// How one client tracks.
struct TrackingMode {
  bool broadcast = false;
  bool opt_in = false, opt_out = false;
  bool no_loop = false;        // not what it changes itself
  bool caching = false;        // CLIENT CACHING was called for the next command
  bool script_reads = false;   // the script that runs has read
  bool broken = false;         // the client that should hear in its place has gone
  std::uint64_t redirect = 0;  // who hears in its place; 0: itself
  absl::btree_set<std::string> prefixes;
};

class Tracking {
 public:
  explicit Tracking(Server& server) : server_(server) {}

  bool any() const { return clients_ != 0; }
  // `mode`'s prefixes are added to those the client has.
  void enable(Client& client, const TrackingMode& mode);
  void disable(Client& client);

  // The client has run a command, alone or in a script. If it read, its keys are remembered; when a script
  // has read, those that the script declared, too, as Redis 7.0 does.
  void ran(Client& client, const Command& command, Arguments arguments);
  // A key changed, through whatever client; or it went by itself: then who broadcasts hears nothing.
  void changed(std::string_view key);
  void forget_key(std::string_view key);
  // Every key may have changed.
  void flushed();

  // The client's command is over: sends what was held back meanwhile.
  void command_over(Client& client);
  // The round is over: who broadcasts hears what it changed.
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
    // The keys that changed, and who changed each last; 0: nobody's command did.
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
  void tell_or_hold(Client& client, std::optional<std::string_view> key);
  Client* find(std::uint64_t id) const;
  Client* receiver(Client& client);
  bool is_being_answered(const Client& client) const;

  Server& server_;
  std::size_t clients_ = 0;
  std::size_t items_ = 0;
  Table table_;
  std::vector<Table::value_type*> order_;  // all keys, in no order: so that a random one can be taken
  TextMap<Prefix> prefixes_;
  absl::btree_map<std::size_t, std::size_t> lengths_;  // of prefixes, and how many have it
  bool broadcasts_ = false;                            // some Prefix has changed keys
  std::vector<std::pair<std::uint64_t, std::optional<std::string>>> pending_;
};

}  // namespace weir::kv

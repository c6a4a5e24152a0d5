// A server that keeps no data and passes commands on to a cluster, as the rest of the server sees it. What
// does that is router.hpp, which knows the whole server, and which nothing that the whole server knows may
// include.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kv/commands/command.hpp"

namespace weir::kv::cluster {

// For INFO.
struct GatewayFacts {
  std::string seed;
  std::size_t nodes = 0, links = 0, slots_covered = 0, waiting = 0, held_clients = 0;
  std::size_t own_links = 0, idle_own_links = 0, topics = 0;
  std::uint64_t passed_on = 0, moved = 0, asked = 0, map_reads = 0, map_failures = 0, broken_links = 0;
};

class Gateway {
 public:
  virtual ~Gateway() = default;

  // Runs one request: Server::execute_here() does what the server does by itself and calls pass_on() where a
  // command would run. False: the client has to wait, and the request is offered again.
  virtual bool execute(Client& client, Arguments words) = 0;
  // True: the command runs elsewhere, or was answered with why it cannot.
  virtual bool pass_on(Client& client, const Command& command, Arguments words) = 0;
  // The client's requests have become unreadable. True: it is told, and ended, when the replies before it
  // have left.
  virtual bool end_later(Client& client, std::string_view error) = 0;
  virtual void forget(Client& client) = 0;
  // Whether replies to what the client has sent are still to come. Not while it waits in a blocking command:
  // a client that has left must not keep its place there.
  virtual bool owes(const Client& client) const = 0;
  // Whether the client waits in a blocking command.
  virtual bool blocks(const Client& client) const = 0;
  // What was passed on in this round leaves.
  virtual void end_round() = 0;
  virtual void look_at_clock() = 0;
  virtual std::int64_t next_look_ms() const = 0;
  virtual GatewayFacts facts() const = 0;
  virtual void shut_down() = 0;
};

}  // namespace weir::kv::cluster

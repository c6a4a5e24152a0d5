// A server that keeps no data and passes commands on to a cluster, as the rest of the server sees it. Its
// implementation is gateway/router.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kv/command/command.hpp"

namespace weir::kv {
class Client;
}

namespace weir::kv::cluster {

// Numbers for INFO.
struct GatewayFacts {
  std::string seed;
  std::size_t nodes = 0, links = 0, slots_covered = 0, waiting = 0, held_clients = 0;
  std::size_t own_links = 0, idle_own_links = 0, topics = 0;
  std::uint64_t passed_on = 0, moved = 0, asked = 0, map_reads = 0, map_failures = 0, broken_links = 0;
};

class Gateway {
 public:
  virtual ~Gateway() = default;

  // Runs one request. Server::execute_here() runs what the server can do by itself, and calls pass_on() in
  // place of running a command. Returns false if the client has to wait; the request is then offered again.
  virtual bool execute(Client& client, Arguments words) = 0;
  // Returns true if the command was sent elsewhere, or answered with the reason why it cannot be.
  virtual bool pass_on(Client& client, const Command& command, Arguments words) = 0;
  // Call when the client's requests cannot be parsed any more. Returns true if replies are still due: the
  // client gets the error after them and is then closed.
  virtual bool end_later(Client& client, std::string_view error) = 0;
  virtual void forget(Client& client) = 0;
  // Whether replies to the client's requests are still due. False while it waits in a blocking command: a
  // client that has left must not keep its place in that queue.
  virtual bool owes(const Client& client) const = 0;
  // Whether the client waits in a blocking command.
  virtual bool blocks(const Client& client) const = 0;
  // Sends what was passed on in this round.
  virtual void end_round() = 0;
  virtual void look_at_clock() = 0;
  virtual std::int64_t next_look_ms() const = 0;
  virtual GatewayFacts facts() const = 0;
  virtual void shut_down() = 0;
};

}  // namespace weir::kv::cluster

// MIGRATE as the server sees it: clients whose keys move to other servers. This header depends on neither.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::kv {
class Client;
class ServerParts;
}  // namespace weir::kv

namespace weir::kv::migration {

// What a MIGRATE asks for.
struct Order {
  std::string host;
  std::uint16_t port = 0;
  std::int64_t target_db = 0;
  std::int64_t timeout_ms = 0;  // the other server may be silent that long
  bool copy = false;
  bool replace = false;
  std::string user;
  std::optional<std::string> password;
  std::vector<std::string> keys;
};

class Migrations {
 public:
  virtual ~Migrations() = default;

  // False: one of the keys is under way for another client. Otherwise block the client and start().
  virtual bool prepare(Client& client, Order order) = 0;
  // Moves the keys; the client is answered when that is over, which may be at once.
  virtual void start(Client& client) = 0;
  // The client no longer waits: its keys stay where they are. Nothing is done for a client that moves none.
  virtual void abandon(Client& client) = 0;
  // Connections that wait for the next MIGRATE to the same server.
  virtual std::size_t kept_links() const = 0;
  virtual std::int64_t next_look_ms() const = 0;  // 0: there is nothing to look at
  virtual void look_at_clock() = 0;
  virtual void shut_down() = 0;
};

std::unique_ptr<Migrations> make_migrations(ServerParts& server);

}  // namespace weir::kv::migration

// The clients that asked with MONITOR to see every command.
//
// A command is shown after it has run, and those of a transaction one by one. Administrative commands are not
// shown, and passwords are hidden. Threading: the server's one thread.
#pragma once

#include <string>
#include <vector>

#include "kv/resp/request.hpp"

namespace weir::kv {

class Client;
struct Command;
struct ServerCommon;

class Monitors {
 public:
  explicit Monitors(ServerCommon& server) : server_(server) {}

  bool any() const { return !clients_.empty(); }
  void add(Client& client);
  void remove(Client& client);  // does nothing if it is not a monitor
  void tell(const Client& from, const Command& command, Arguments arguments);

 private:
  ServerCommon& server_;
  std::vector<Client*> clients_;
};

// The words of a command as others may see them, with passwords hidden.
std::vector<std::string_view> without_passwords(const Command& command, Arguments arguments);

}  // namespace weir::kv

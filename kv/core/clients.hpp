// All clients of the server by number, which is their order of arrival.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace weir::kv {

class Client;

// Lets those who only pass clients on do without knowing what one is.
struct DeleteClient {
  void operator()(Client* client) const;
};
using OwnedClient = std::unique_ptr<Client, DeleteClient>;

using Clients = absl::btree_map<std::uint64_t, OwnedClient>;

// What is left to do for clients before the round ends.
struct Round {
  std::vector<Client*> dirty;          // have something to send
  std::vector<std::uint64_t> resumed;  // were served and continue with their next request
  std::vector<OwnedClient> ended;      // are freed
};

}  // namespace weir::kv

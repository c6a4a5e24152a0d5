// All clients of the server by number, which is their order of arrival.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <memory>

namespace weir::kv {

class Client;

using Clients = absl::btree_map<std::uint64_t, std::unique_ptr<Client>>;

}  // namespace weir::kv

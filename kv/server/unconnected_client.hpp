// A client whose requests do not come over a connection: they are a log's or a primary's. Nothing that it
// runs waits, and nobody reads its replies.
#pragma once

#include <memory>
#include <string_view>

#include "kv/server/client.hpp"

namespace weir::kv {

class Server;

// `what` its requests are of, which it shows as its address: it outlives the client.
std::unique_ptr<Client> make_unconnected_client(Server& server, std::string_view what);

}  // namespace weir::kv

// A client without a connection: its requests come from a log or a primary. Its commands never block,
// and nobody reads its replies.
#pragma once

#include <memory>
#include <string_view>

#include "kv/clients/client.hpp"

namespace weir::kv {

// `what` names the source of its requests and is shown as its address. It must outlive the client.
std::unique_ptr<Client> make_unconnected_client(ServerCommon& server, ClientHost& host,
                                                std::string_view what);

}  // namespace weir::kv

// A transport in front of a server's transport: it tells HTTP from frames by a connection's first byte.
//
// Frames begin with 'W' and pass unchanged. Requests of HTTP begin with the capital letters of another
// method, and are answered by a conversation (conversation.hpp), which turns them into frames for the server.
// Until that byte comes, what the server has to say is kept.
//
// Ownership: shared, as every transport; it owns the one behind it. What it keeps for a client that speaks
// HTTP is charged to the server's memory. Threading: the io_context's thread.
#pragma once

#include <asio/io_context.hpp>
#include <memory>

#include "rpc/http/conversation.hpp"
#include "rpc/server/memory_budget.hpp"
#include "rpc/transport/transport.hpp"

namespace weir::rpc::http {

// `memory` and what `terms` refer to are kept by `keeps`.
struct GatewayTerms {
  std::shared_ptr<const Terms> terms;
  std::shared_ptr<const void> keeps;
  MemoryBudget* memory;
};

TransportPtr make_gateway(asio::io_context& io, TransportPtr behind, GatewayTerms terms);

}  // namespace weir::rpc::http

// What sees every call of a connection or server: to count, log, trace, refuse.
//
// A chain is asked in order before a call and in reverse order after it. An error from before() ends the
// call: interceptors further on are not asked, the function does not run, and those asked earlier are told of
// the end. An exception does the same (Errc::failed). What after() throws is dropped, and the other
// interceptors are still told. Where there is no chain, nothing is done and nothing is paid. Threading: the
// connection's thread, during the call; an interceptor shared by several servers or clients of one program
// may be called by all their threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "rpc/client/client_core.hpp"
#include "rpc/context.hpp"
#include "rpc/error.hpp"
#include "rpc/trace_context.hpp"

namespace weir::rpc {

// How a call ended. Of a stream, the bytes are those of its request and its result.
struct CallEnd {
  const Error* error = nullptr;  // null: well
  std::chrono::nanoseconds latency{0};
  std::size_t request_bytes = 0;
  std::size_t reply_bytes = 0;
  CompressionCounts request_packed;  // at the server: of its body and its result's, one or none each
  CompressionCounts reply_packed;
  const Metadata* metadata =
      nullptr;  // at the client: what came back; never null there once the call was sent
  // At the client: the trace that went with the call, and what the caller had given as CallOptions::trace.
  const TraceContext* trace = nullptr;
  const TraceContext* parent_trace = nullptr;
};

class ServerInterceptor {
 public:
  virtual ~ServerInterceptor() = default;
  virtual Result<void> before(Context&) { return {}; }
  // If the call ended well, the reply with its attachment is already on its way; if not, it is sent next.
  virtual void after(Context&, const CallEnd&) {}
};
using ServerChain = std::vector<std::shared_ptr<ServerInterceptor>>;

// A call about to be sent; before() may change it.
struct OutgoingCall {
  std::string_view method;  // empty if only its number is known
  CallOptions options;
  std::optional<TraceContext> trace;  // instead of options.trace
  Metadata metadata;  // besides options.metadata, before which it goes where names are the same
};

class ClientInterceptor {
 public:
  virtual ~ClientInterceptor() = default;
  virtual Result<void> before(OutgoingCall&) { return {}; }
  virtual void after(std::string_view /*method*/, const CallEnd&) {}
};

// Asks the chain; returns the first refusal, of which the interceptors asked earlier are told at once.
Result<void> ask(const ServerChain& chain, Context& context);
void tell(const ServerChain& chain, Context& context, const CallEnd& end);
Result<void> ask(const ClientChain& chain, OutgoingCall& call);
void tell(const ClientChain& chain, std::string_view method, const CallEnd& end);

}  // namespace weir::rpc

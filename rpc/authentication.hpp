// Who calls, and whether they may: functions that a server is given.
//
// A connection's credentials are the token that its client sent, if any, and what its certificate says.
// `authenticate` makes an identity of them, or refuses, which ends the connection: it runs when a token comes
// and, for a client without one, at its first request. When a client sends a newer token it runs again; what
// it refuses then are the calls that follow. `authorise` runs for each call and may refuse that one.
// Functions see the identity in their Context. Without `authenticate` everybody is anonymous; `authorise` is
// asked even so.
//
// A token is text for whoever issued it; it is protected on the way as the transport protects it, so send
// tokens over TLS. Both functions run in the server's thread: what takes long, such as asking another server,
// belongs into whoever issues tokens.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "rpc/error.hpp"

namespace weir::rpc {

struct Credentials {
  std::string token;        // empty: none came
  std::string certificate;  // whom the client's certificate names, "CN=..."; empty: none was shown
  std::string peer;         // "tls 127.0.0.1:4711"
};

struct Identity {
  std::string name;  // empty: anonymous
  // From then on calls are refused as unauthenticated until the client sends a newer token, which rpc::Client
  // does by itself; a pool then makes the calls again that were refused.
  std::chrono::steady_clock::time_point expires = std::chrono::steady_clock::time_point::max();
};

struct Authentication {
  std::function<Result<Identity>(const Credentials&)> authenticate;
  std::function<Result<void>(const Identity&, std::string_view method)> authorise;
};

// What a client sends: asked for when it connects, and again when the server said that what it sent is no
// longer good. In the thread of the client's io_context. Where it throws, there is no token this time:
// connect() fails, or, later on, the next call that is refused asks again.
using TokenProvider = std::function<std::string()>;

}  // namespace weir::rpc

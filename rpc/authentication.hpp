// Who calls, and whether they may: functions that a server is given.
//
// A connection's credentials are the token that its client sent, if any, and the name in its certificate.
// `authenticate` turns them into an identity, or refuses, which ends the connection: it runs when a token
// arrives and, for a client without one, at its first request. When a client sends a newer token it runs
// again; if it then refuses, the calls that follow are refused. `authorise` runs for each call and may refuse
// that call. Functions see the identity in their Context. Without `authenticate` everybody is anonymous;
// `authorise` is still asked.
//
// A token is text that only its issuer understands. In transit only the transport protects it, so send
// tokens over TLS. Both functions run in the server's thread: slow work, such as asking another server, is
// the token issuer's business.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "rpc/error.hpp"

namespace weir::rpc {

struct Credentials {
  std::string token;        // empty: no token came
  std::string certificate;  // whom the client's certificate names, "CN=..."; empty: none was shown
  std::string peer;         // "tls 127.0.0.1:4711"
};

struct Identity {
  std::string name;  // empty: anonymous
  // After this time calls are refused as unauthenticated until the client sends a newer token. An rpc::Client
  // does so by itself; a pool then repeats the refused calls.
  std::chrono::steady_clock::time_point expires = std::chrono::steady_clock::time_point::max();
};

struct Authentication {
  std::function<Result<Identity>(const Credentials&)> authenticate;
  std::function<Result<void>(const Identity&, std::string_view method)> authorise;
};

// Returns the token that a client sends: called when it connects, and again when the server said that the
// last token is no longer valid. Runs in the thread of the client's io_context. If it throws, there is no
// token this time: connect() fails or, later on, the next refused call asks again.
using TokenProvider = std::function<std::string()>;

}  // namespace weir::rpc

// What can go wrong between a client program and its server; each error names the next step.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace weir::client {

enum class ErrorKind {
  usage,        // the user's request makes no sense
  unreachable,  // no connection could be made
  refused,      // connected, but TLS or the login was refused
  closed,       // the server ended the connection
  protocol,     // received bytes that are not RESP
  timed_out,
  interrupted,  // the user gave up waiting
  unsupported,  // this build or this machine cannot do it
};

struct Error {
  ErrorKind kind;
  std::string what;  // the cause and the next step, for a user to read
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(ErrorKind kind, std::string what) {
  return std::unexpected(Error{kind, std::move(what)});
}

}  // namespace weir::client

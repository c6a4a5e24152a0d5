// What can go wrong between a client program and its server, as a value that says what to do next.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace weir::client {

enum class ErrorKind {
  usage,        // what the user asked for makes no sense
  unreachable,  // no connection could be made
  refused,      // connected, but TLS or the login was refused
  closed,       // the server ended the connection
  protocol,     // what arrived is not RESP
  timed_out,
  interrupted,  // the user gave up waiting
  unsupported,  // this build or this machine cannot do it
};

struct Error {
  ErrorKind kind;
  std::string what;  // names the cause and the next step, fit to show a user
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(ErrorKind kind, std::string what) {
  return std::unexpected(Error{kind, std::move(what)});
}

}  // namespace weir::client

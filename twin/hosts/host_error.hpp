// What can go wrong with hosts: a cause to branch on, and a sentence that names the cause and the next step.
#pragma once

#include <cerrno>
#include <cstring>
#include <expected>
#include <string>
#include <utility>

namespace weir::hosts {

enum class Cause {
  namespaces_refused,  // the kernel or a security policy permits this user no user namespace
  invalid_plan,        // a name or a number of hosts that cannot be
  exists,              // there is such a network already
  no_network,          // its keeper does not answer
  no_host,             // the network has no such host
  system,              // a system call failed
};

struct Error {
  Cause cause = Cause::system;
  std::string what;
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> failure(Cause cause, std::string what) {
  return std::unexpected(Error{cause, std::move(what)});
}

// `what` is completed with the text of `error`, an errno.
inline std::unexpected<Error> failure_errno(int error, std::string what) {
  return failure(Cause::system, std::move(what) + ": " + std::strerror(error));
}

}  // namespace weir::hosts

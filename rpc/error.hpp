// What can go wrong with a call, as types.
//
// `Errc` is the cause; values up to 63 travel in a reply's status, so they never change their meaning.
// `Error` adds a sentence that names the cause in this place and what to do next, fit to show a user. A
// function that is called may return Result<T> to fail with a cause of its choice; an exception that leaves
// it becomes Errc::failed.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

namespace weir::rpc {

enum class Errc : std::uint16_t {
  // Said by the server.
  unknown_method = 1,     // it has no function of that name
  bad_arguments = 2,      // they are not what the function takes
  too_large = 3,          // a body or attachment beyond a limit, of either end
  deadline_exceeded = 4,  // also said by the client, when it stops waiting
  cancelled = 5,
  overloaded = 6,         // too many calls in flight; it did not run
  draining = 7,           // the server takes no new calls; it did not run
  failed = 8,             // the function ran and failed
  denied = 9,             // the caller may not do that
  version_mismatch = 10,  // the two ends speak different versions of the frame
  wrong_codec = 11,       // the arguments are in another codec than the function's
  unauthenticated = 12,   // the credentials are missing, wrong or too old; it did not run
  schema_mismatch = 13,   // caller and server have different types for the function; it did not run

  // Said by the client's side only.
  bad_reply = 64,   // the reply is not of the type that the function returns
  connection_lost,  // the peer or the network went away; the call may have run
  closed,           // this end closed; what was under way may have run
  protocol,         // the peer sent what is no frame
  bad_address,      // the address cannot be read or resolved
  unreachable,      // nobody answers there
  tls,              // the handshake failed, or a certificate cannot be used
  rdma,             // no RDMA device, or it refused
  bad_setting,
  end_of_stream,  // no failure: the stream ended as it should, nothing more comes
};

std::string_view name_of(Errc);
// The cause that a status on the wire means; a status that this version does not know counts as `failed`.
Errc errc_of(std::uint16_t status);
// True if the function certainly did not run, so that calling again cannot run it twice. The server believes
// its functions: a function that returns such a cause itself claims that it did nothing, and a pool repeats
// calls that end with `overloaded` or `draining` (retry.hpp). So do not pass on such causes from calls that
// the function made.
bool did_not_run(Errc);

struct ErrorDetails;

struct Error {
  Errc code = Errc::failed;
  std::string what;
  std::shared_ptr<const ErrorDetails> details =
      nullptr;  // for a program (error_details.hpp), if there are any
};

template <class T>
using Result = std::expected<T, Error>;

// A server says no more than that it has no function "of that name", which it got as a number. Puts the name
// into that sentence. An empty name, and all other errors, change nothing.
Error named(Error error, std::string_view function);

std::unexpected<Error> fail(Errc, std::string what);

}  // namespace weir::rpc

// What can go wrong in rdma/, as types.
//
// `Errc` is the cause, a std::error_code of its own category, so that Asio handlers and callers that only
// branch can use it; `Error` adds a sentence that names the cause in this place and what to do next, fit to
// show a user. End of stream is asio::error::eof and cancellation is asio::error::operation_aborted, as for
// any Asio stream.
#pragma once

#include <expected>
#include <string>
#include <system_error>

namespace weir::rdma {

enum class Errc {
  // Before there is a connection.
  library_not_found = 1,  // libibverbs.so.1 or librdmacm.so.1 is not where the choice of provider says
  library_unusable,       // found, but it does not load or lacks a function
  provider_conflict,      // a second, different provider was asked for in one process
  no_device,              // the library works and lists no RDMA device
  address_unresolved,     // no RDMA device reaches that address
  refused,                // nobody listens there, or the listener rejected us
  unreachable,            // the peer's host did not answer
  address_in_use,

  bad_setting,

  // Limits of ours.
  memory_limit,      // the registered pool is at its cap
  connection_limit,  // completion queues, the backlog or the connection table are full
  device_error,      // the device refused an operation for a reason of its own (os error in the text)

  // The peer broke the protocol; only its connection ends.
  bad_control_length,       // a control message that is not 32 bytes
  unknown_opcode,           // a control message we do not know
  unexpected_message,       // one that this side never receives
  unknown_feature,          // SetClientFeature asks for a feature nobody has
  bad_announcement,         // a receive buffer of length 0, or one that wraps around the address space
  immediate_beyond_buffer,  // WRITE_WITH_IMM claims more bytes than the buffer we announced has left
  control_flood,            // more questions than we can answer
  remote_access,            // memory that the peer announced may not be written or read
  trespass,                 // the peer tried to write or read memory that it was given no right to

  // The same, for channels.
  not_a_channel,     // the peer does not speak the channel protocol, or another version of it
  bad_frame,         // a frame whose records do not parse, or come where they may not
  bad_immediate,     // an immediate of no known kind, or that gives back what was never taken
  window_overrun,    // more frames or offers than were granted
  oversize_message,  // the peer begins a message longer than we said we take

  // Ours: a message longer than the peer takes.
  message_too_long,

  // The connection ended.
  connection_lost,  // the peer died, its host or the network between
  closed,           // used after close()
};

const std::error_category& error_category() noexcept;
std::error_code make_error_code(Errc) noexcept;

struct Error {
  std::error_code code;
  std::string what;
};

template <class T>
using Result = std::expected<T, Error>;

std::unexpected<Error> fail(Errc, std::string what);
// `what` followed by the text of errno value `os_error`.
std::unexpected<Error> fail_os(Errc, std::string what, int os_error);

}  // namespace weir::rdma

template <>
struct std::is_error_code_enum<weir::rdma::Errc> : std::true_type {};

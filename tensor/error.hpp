// What can go wrong with tensors, as types. `Errc` is for programs; `what` is a sentence that names the cause
// and the next step.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace weir::tensor {

enum class Errc : std::uint16_t {
  ok = 0,
  not_published = 1,   // the hub has no array of this name
  superseded = 2,      // newer versions replaced this one while it was being read; fetch again
  shape_mismatch = 3,  // `out` does not have the array's dtype and size
  peer_gone = 4,       // the hub's process ended, or another hub took its place (Error::generation)
  timed_out = 5,
  unreachable = 6,  // no hub answers at the address
  bad_address = 7,  // the address or a setting does not parse
  bad_array = 8,    // a dtype, shape or name that cannot be published
  too_much = 9,     // beyond a limit of this side or of the hub (the text says which)
  protocol = 10,    // the other end breaks the protocol
  refused = 11,     // the hub does not serve this peer (token), or takes no such pushes from it
  closed = 12,
  device = 13,  // the RDMA device or its library reports an error (the text says why)
  no_gpu = 14,  // an array is in GPU memory, and the GPU or its driver cannot be used (the text says why)
};

// "peer_gone"; "unknown" for other numbers.
std::string_view name_of(Errc);
// What the caller can do about it, as a sentence.
std::string_view next_step(Errc);

struct Error {
  Errc code = Errc::ok;
  std::string what;
  std::uint64_t generation = 0;  // peer_gone: the hub's generation
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Errc code, std::string what, std::uint64_t generation = 0) {
  return std::unexpected(Error{code, std::move(what), generation});
}

}  // namespace weir::tensor

// The secret by which our packets to other hosts prove that they come from a NIC of ours, and theirs to us
// (wire/keyed_icrc.hpp).
#pragma once

#include <optional>

#include "hash/siphash.hpp"
#include "link/same_host.hpp"

namespace weir::verbs {

inline constexpr char wire_key_variable[] = "WEIR_WIRE_KEY";

// `setting`: 32 hexadecimal digits, or the name of a file that holds them and that no other user can read;
// nullptr: no key. What is neither is an error and never "no key": that would switch the protection off.
link::Result<std::optional<hash::SipKey>> read_wire_key(const char* setting);

}  // namespace weir::verbs

// Words that go with a call beside its arguments, and back beside its result: what interceptors and functions
// of the two ends have to tell each other.
//
// On the wire, before the arguments and behind what agreed_schemas.hpp puts there, or before a result or the
// text of a failure, where FrameFlag::metadata says so:
//
//   offset  bytes
//        0      2  bytes of what follows, little endian
//        2         MessagePack: a map from text to text
//
// They go only to an end whose hello knows them (hello.hpp). Bounded: max_metadata_bytes encoded,
// max_metadata_entries. Pure. Threading: any.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "rpc/error.hpp"
#include "rpc/wire/bytes.hpp"

namespace weir::rpc {

using Metadata = std::map<std::string, std::string, std::less<>>;

inline constexpr std::size_t max_metadata_bytes = 8 << 10;
inline constexpr std::size_t max_metadata_entries = 64;

// Errc::too_large: beyond what may go; nothing was appended.
Result<void> append(Bytes& to, const Metadata& metadata);
// What stands at the front of `body`, and how many bytes of it that were.
Result<std::size_t> read_metadata(std::span<const std::byte> body, Metadata& into);
// Of memory, about.
std::size_t memory_of(const Metadata& metadata);

}  // namespace weir::rpc

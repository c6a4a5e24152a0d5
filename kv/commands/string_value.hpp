// Shared by the commands on strings, counters and bits.
#pragma once

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"

namespace weir::kv {

// Makes the key hold `value`; creates the record if `record` is null. A value that was received into its own
// block is kept without a copy. The expiry does not change.
void store_text(const Call& call, Record*& record, std::string_view key, const Argument& value);

// Whether a string of `size` + `more` bytes is allowed; otherwise replies with the error.
bool fits_string(const Call& call, std::size_t size, std::size_t more);

// The most significant bit of the first byte is bit 0; bits beyond the end are 0.
inline bool bit_at(std::string_view text, std::uint64_t offset) {
  const std::uint64_t byte = offset >> 3;
  return byte < text.size() && (static_cast<unsigned char>(text[byte]) >> (7 - (offset & 7)) & 1) != 0;
}

}  // namespace weir::kv

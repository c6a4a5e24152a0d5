// What the commands on strings, counters and bits share.
#pragma once

#include "kv/commands/command.hpp"

namespace weir::kv {

// Makes the key hold `value`; creates the record when `record` is null. A value received into its own block
// is kept without a copy. The expiry stays as it is.
void store_text(const Call& call, Record*& record, std::string_view key, const Argument& value);

// Whether a string of `size` + `more` bytes may be; answers the client when not.
bool fits_string(const Call& call, std::size_t size, std::size_t more);

}  // namespace weir::kv

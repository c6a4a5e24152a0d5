// What DUMP returns and RESTORE takes: bytes, the version of the format (2), and a checksum of all that (8).
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kv/rdb/encoded.hpp"
#include "kv/rdb/format.hpp"
#include "kv/rdb/value_decoder.hpp"

namespace weir::kv::rdb {

// A payload of what is encoded.
std::string seal(const Encoded& encoded);
// What a payload holds; nothing: its version is not known or its checksum is wrong.
std::optional<std::string_view> unseal(std::string_view payload);

std::string dump(const Value& value);
// `payload` was unsealed. `decompressed_most` limits what compressed texts become in all.
std::expected<Value, Error> restore(std::string_view unsealed, const Limits& limits,
                                    std::uint64_t decompressed_most);

// FUNCTION DUMP's payload: the texts of libraries.
std::string dump_functions(const std::vector<std::string_view>& texts);
// The error is what Redis says of it.
std::expected<std::vector<std::string>, std::string> restore_functions(std::string_view unsealed,
                                                                       std::uint64_t decompressed_most);

}  // namespace weir::kv::rdb

// The payload of DUMP and RESTORE: the value, the version of the format (2 bytes), and a checksum of both
// (8).
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

// Appends the version and checksum to the encoded value.
std::string seal(const Encoded& encoded, int version);
// The payload without them; nothing if the version is unknown or the checksum is wrong.
std::optional<std::string_view> unseal(std::string_view payload);

std::string dump(const Value& value, Dialect dialect = Dialect::redis);
// `unsealed` comes from unseal(). `decompressed_most` limits the total size of decompressed texts.
std::expected<Value, Error> restore(std::string_view unsealed, const Limits& limits,
                                    std::uint64_t decompressed_most);

// The payload of FUNCTION DUMP, from the libraries' source texts.
std::string dump_functions(const std::vector<std::string_view>& texts);
// The error is in Redis's words.
std::expected<std::vector<std::string>, std::string> restore_functions(std::string_view unsealed,
                                                                       std::uint64_t decompressed_most);

}  // namespace weir::kv::rdb

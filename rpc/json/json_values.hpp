// Converts JSON values to MessagePack and back, including what only one of them can express. Pure.
//
// Map keys that are not text become JSON within text: {"1": ...}, {"[1,2]": ...}. Bytes become Json's binary
// values. The caller limits the depth of values.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weir::rpc::json {

using Json = nlohmann::ordered_json;

// Parses JSON with a limited nesting of arrays and objects, because a walk recurses once for each. Throws
// TooDeep, or what Json::parse throws.
struct TooDeep {};
Json parse_no_deeper(std::string_view text, int deepest);

std::vector<std::byte> pack(const Json& value);
// A value to be packed later, unchanged, for a map whose keys JSON cannot have. `map` is an object whose keys
// are all JSON; nullopt if a key is not, or nests deeper than the codec takes.
std::optional<Json> with_keys_of_json(const Json& map);
// nullopt: the body is not MessagePack, or holds what JSON cannot show, such as a map within a key
// within a key within a key.
std::optional<Json> unpack(std::span<const std::byte> body);

}  // namespace weir::rpc::json

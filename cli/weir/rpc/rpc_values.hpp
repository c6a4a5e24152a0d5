// JSON values as MessagePack and back, where one has what the other has not. Pure.
//
// Keys of maps that are no text are JSON in text: {"1": ...}, {"[1,2]": ...}. Bytes come as binary values of
// Json's. Depth: that of the value, which the caller bounds.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weir::command {

using Json = nlohmann::ordered_json;

// JSON of at most so many arrays and objects within each other: what walks a value calls itself for each.
// Throws TooDeep, or what Json::parse does.
struct TooDeep {};
Json parse_no_deeper(std::string_view text, int deepest);

std::vector<std::byte> pack(const Json& value);
// What goes into a value that is packed later, as it is: JSON has no map with such keys. `map` is an object,
// each key of which is JSON; nothing if one is not, or nests deeper than the codec takes.
std::optional<Json> with_keys_of_json(const Json& map);
// Nothing: it is no MessagePack, or holds what JSON cannot show, as a map within a key within a key within a
// key.
std::optional<Json> unpack(std::span<const std::byte> body);

}  // namespace weir::command

// Places, units and distances as geo commands write them.
#pragma once

#include <optional>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/store/geohash.hpp"
#include "kv/store/zset.hpp"

namespace weir::kv {

// Reads "longitude latitude" from argument `at`; replies with an error if they are not on the map.
bool parse_place(const Call& call, std::size_t at, geo::Place& place);
// The metres in "m", "km", "ft" or "mi"; replies with an error for any other word.
bool parse_unit(const Call& call, std::size_t at, double& metres);

// The place of a member.
std::optional<geo::Place> place_of_member(SortedSet* zset, std::string_view member);

void reply_place(const Call& call, geo::Place place);
// With four digits after the point.
void reply_distance(const Call& call, double distance);
// As a 64-bit integer, whatever score ZADD stored.
void reply_hash(const Call& call, double score);

}  // namespace weir::kv

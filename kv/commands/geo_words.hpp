// Places, units and distances as the commands on places write them.
#pragma once

#include <optional>

#include "kv/commands/command.hpp"
#include "kv/store/geohash.hpp"
#include "kv/store/zset.hpp"

namespace weir::kv {

// "longitude latitude" from argument `at` on; answers when it is no place on the map.
bool parse_place(const Call& call, std::size_t at, geo::Place& place);
// The metres of one "m", "km", "ft" or "mi"; answers when it is none of them.
bool parse_unit(const Call& call, std::size_t at, double& metres);

// Where a member is.
std::optional<geo::Place> place_of_member(SortedSet* zset, std::string_view member);

void reply_place(const Call& call, geo::Place place);
// With four digits behind the point.
void reply_distance(const Call& call, double distance);
// As a 64-bit integer, whatever ZADD made of it.
void reply_hash(const Call& call, double score);

}  // namespace weir::kv

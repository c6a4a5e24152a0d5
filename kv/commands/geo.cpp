// Places as members of sorted sets: adding and reading them. Searching is in geo_search.cpp.
#include <vector>

#include "kv/commands/collection.hpp"
#include "kv/commands/geo_words.hpp"
#include "kv/commands/zset_adding.hpp"

namespace weir::kv {

namespace {

void geoadd(const Call& call) {
  AddOptions options;
  std::size_t at = 2;
  for (; at < call.count(); ++at) {
    bool* option = is_word(call[at], "NX")   ? &options.only_new
                   : is_word(call[at], "XX") ? &options.only_old
                   : is_word(call[at], "CH") ? &options.count_changed
                                             : nullptr;
    if (option == nullptr) break;
    *option = true;
  }
  const std::size_t words = call.count() - at;
  if (words == 0 || words % 3 != 0 || (options.only_new && options.only_old)) return call.syntax_error();
  std::vector<ScoredMember> members;
  for (; at < call.count(); at += 3) {
    geo::Place place;
    if (!parse_place(call, at, place)) return;
    members.push_back({geo::score_of(place), call[at + 2]});
  }
  add_scored(call, members, options);
}

void geodist(const Call& call) {
  if (call.count() > 5) return call.syntax_error();
  double metres = 1;
  if (call.count() == 5 && !parse_unit(call, 4, metres)) return;
  SortedSet* zset = nullptr;
  if (!read_as(call, call[1], zset)) return;
  const auto from = place_of_member(zset, call[2]);
  const auto to = place_of_member(zset, call[3]);
  from&& to ? reply_distance(call, geo::distance(*from, *to) / metres) : call.reply.null();
}

// Replies with `say` for each requested member that exists, with `say_none` for the others.
template <class Say, class SayNone>
void for_each_member(const Call& call, Say say, SayNone say_none) {
  SortedSet* zset = nullptr;
  if (!read_as(call, call[1], zset)) return;
  call.reply.array(call.count() - 2);
  for (std::size_t i = 2; i < call.count(); ++i) {
    const auto place = place_of_member(zset, call[i]);
    place ? say(*place) : say_none();
  }
}

void geohash(const Call& call) {
  for_each_member(
      call, [&](geo::Place place) { call.reply.bulk(geo::geohash_text(place)); }, [&] { call.reply.null(); });
}
void geopos(const Call& call) {
  for_each_member(
      call, [&](geo::Place place) { reply_place(call, place); }, [&] { call.reply.null_array(); });
}

}  // namespace

std::span<const Command> geo_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"geoadd", -5, write | denyoom, 1, 1, 1, geoadd, "geo", "Adds members at their places."},
      {"geodist", -4, readonly, 1, 1, 1, geodist, "geo", "Returns how far two members are apart."},
      {"geohash", -2, readonly, 1, 1, 1, geohash, "geo", "Returns members' places as geohashes."},
      {"geopos", -2, readonly, 1, 1, 1, geopos, "geo", "Returns members' longitudes and latitudes."},
  };
  return commands;
}

}  // namespace weir::kv

#include "kv/commands/geo_words.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

std::int64_t as_integer(double value) {
  constexpr double too_much = 9223372036854775808.0;
  if (!(std::fabs(value) < too_much)) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

}  // namespace

bool parse_place(const Call& call, std::size_t at, geo::Place& place) {
  if (!call.number(at, place.longitude) || !call.number(at + 1, place.latitude)) return false;
  if (geo::on_the_map(place)) return true;
  std::array<char, 768> text;  // a double in fixed notation has up to 309 digits before the point
  std::snprintf(text.data(), text.size(), "ERR invalid longitude,latitude pair %f,%f", place.longitude,
                place.latitude);
  call.reply.error(text.data());
  return false;
}

bool parse_unit(const Call& call, std::size_t at, double& metres) {
  constexpr std::array<std::pair<std::string_view, double>, 4> units{
      {{"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}}};
  for (const auto& [name, has] : units) {
    if (is_word(call[at], name)) return metres = has, true;
  }
  call.reply.error("ERR unsupported unit provided. please use M, KM, FT, MI");
  return false;
}

std::optional<geo::Place> place_of_member(SortedSet* zset, std::string_view member) {
  if (zset == nullptr) return std::nullopt;
  const auto found = zset->find(member);
  return found ? std::optional(geo::place_of(found->score())) : std::nullopt;
}

void reply_place(const Call& call, geo::Place place) {
  call.reply.array(2);
  for (const double coordinate : {place.longitude, place.latitude}) {
    const std::string text = format_long_double_human(coordinate);
    call.reply.resp3() ? call.reply.raw("," + text + "\r\n") : call.reply.bulk(text);
  }
}

void reply_distance(const Call& call, double distance) {
  constexpr std::size_t digits = 4;
  std::string text = std::to_string(as_integer(std::rint(distance * 10'000)));
  if (text.size() <= digits) text.insert(0, digits + 1 - text.size(), '0');
  text.insert(text.size() - digits, 1, '.');
  call.reply.bulk(text);
}

void reply_hash(const Call& call, double score) { call.reply.integer(as_integer(score)); }

}  // namespace weir::kv

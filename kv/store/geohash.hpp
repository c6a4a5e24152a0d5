// Places on the earth as the scores of a sorted set, as Redis has them: longitude and latitude, 26 bits each,
// interleaved into a geohash of 52 bits. Members near each other have scores near each other, so a search
// reads a few ranges of scores and looks at each member's distance.
//
// The sphere, the rounding and the order of the ranges are Redis's: clients see all three. Scores may be any
// number, since ZADD writes them, too. Threading: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::kv::geo {

struct Place {
  double longitude = 0;
  double latitude = 0;
};

// The latitudes are those of Web Mercator (EPSG:3857): there is nothing at the poles.
inline constexpr double most_longitude = 180;
inline constexpr double most_latitude = 85.05112878;
bool on_the_map(Place place);

double score_of(Place place);  // of a place on the map
Place place_of(double score);  // the middle of its cell

// Metres along a great circle.
double distance(Place a, Place b);

// Eleven characters, as other programs write geohashes.
std::string geohash_text(Place place);

// What is searched: a circle, a box whose sides run along the parallels and meridians, or a polygon whose
// sides are straight on a map on which those are straight. A polygon does not cross the 180th meridian.
struct Shape {
  enum class Kind : std::uint8_t { circle, box, polygon };
  Kind kind = Kind::circle;
  Place centre;
  double metres = 1;  // that one of the unit below has
  double radius = 0;
  double width = 0, height = 0;
  std::vector<Place> corners;

  // Whether a place is inside; if so, `away` is its distance from the centre in metres.
  bool holds(Place place, double& away) const;
};

// Scores from `low` on, below `high`.
struct ScoreRange {
  double low;
  double high;
};
// Where the members inside lie, among others: nine at most.
std::vector<ScoreRange> ranges_around(const Shape& shape);

}  // namespace weir::kv::geo

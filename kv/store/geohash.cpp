#include "kv/store/geohash.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

namespace weir::kv::geo {

namespace {

constexpr double earth_radius_m = 6372797.560856;
constexpr double radians = 3.14159265358979323846 / 180.0;
constexpr unsigned most_steps = 26;

// The half of Web Mercator's width, with which Redis chooses the size of cells.
constexpr double mercator_m = 20037726.37;

constexpr std::uint64_t latitude_bits = 0x5555555555555555u;
constexpr std::uint64_t longitude_bits = ~latitude_bits;

struct Range {
  double low, high;
  double width() const { return high - low; }
};
struct Area {
  Range longitude, latitude;
};
constexpr Area web_map{{-most_longitude, most_longitude}, {-most_latitude, most_latitude}};
constexpr Area whole_earth{{-180, 180}, {-90, 90}};

// One of the 2^steps times 2^steps cells that the map has.
struct Cell {
  std::uint64_t bits = 0;
  unsigned steps = 0;

  bool operator==(const Cell&) const = default;
};

// Puts a zero bit in front of each bit.
std::uint64_t spread(std::uint64_t bits) {
  bits = (bits | bits << 16) & 0x0000ffff0000ffffu;
  bits = (bits | bits << 8) & 0x00ff00ff00ff00ffu;
  bits = (bits | bits << 4) & 0x0f0f0f0f0f0f0f0fu;
  bits = (bits | bits << 2) & 0x3333333333333333u;
  return (bits | bits << 1) & latitude_bits;
}
// Takes every second bit out.
std::uint32_t gathered(std::uint64_t bits) {
  bits &= latitude_bits;
  bits = (bits | bits >> 1) & 0x3333333333333333u;
  bits = (bits | bits >> 2) & 0x0f0f0f0f0f0f0f0fu;
  bits = (bits | bits >> 4) & 0x00ff00ff00ff00ffu;
  bits = (bits | bits >> 8) & 0x0000ffff0000ffffu;
  return static_cast<std::uint32_t>(bits | bits >> 16);
}

double cells_a_side(unsigned steps) { return static_cast<double>(std::uint64_t{1} << steps); }

// At the eastern and the northern edge the number of the cell is one too high, and stays so: as in Redis.
Cell cell_at(Place place, unsigned steps, const Area& map) {
  const auto number = [steps](double value, Range range) {
    return static_cast<std::uint32_t>((value - range.low) / range.width() * cells_a_side(steps));
  };
  return {spread(number(place.latitude, map.latitude)) | spread(number(place.longitude, map.longitude)) << 1,
          steps};
}

Area area_of(Cell cell) {
  const double cells = cells_a_side(cell.steps);
  const auto range = [cells](std::uint32_t number, Range map) {
    return Range{map.low + number * 1.0 / cells * map.width(),
                 map.low + (number + 1) * 1.0 / cells * map.width()};
  };
  return {range(gathered(cell.bits >> 1), web_map.longitude), range(gathered(cell.bits), web_map.latitude)};
}

// One step to the east or the north (1), to the west or the south (-1); around the edge of the map.
std::uint64_t moved(std::uint64_t bits, std::uint64_t axis, int by, unsigned steps) {
  if (by == 0) return bits & axis;
  const std::uint64_t inside = ~std::uint64_t{0} >> (64 - steps * 2);
  // With the other axis's bits all ones a carry runs through them.
  const std::uint64_t others = ~axis & inside;
  bits &= axis;
  bits = by > 0 ? bits + (others + 1) : (bits | others) - (others + 1);
  return bits & axis & inside;
}
Cell neighbour(Cell cell, int east, int north) {
  return {
      moved(cell.bits, longitude_bits, east, cell.steps) | moved(cell.bits, latitude_bits, north, cell.steps),
      cell.steps};
}

std::uint64_t as_score(std::uint64_t bits, unsigned steps) { return bits << (2 * (most_steps - steps)); }

// What a score's 64 bits are when it is no geohash: below zero in two's complement, and for what does not fit
// the highest bit alone.
std::uint64_t bits_of_score(double score) {
  constexpr double two_to_63 = 9223372036854775808.0;
  if (score >= two_to_63) {
    return score < 2 * two_to_63 ? static_cast<std::uint64_t>(score) : 0;
  }
  if (score < -two_to_63) return std::uint64_t{1} << 63;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(score));
}

double latitude_distance(double a, double b) { return earth_radius_m * std::fabs(b * radians - a * radians); }

// Which cells are large enough that one and those around it cover `metres` in every direction.
unsigned steps_for(double metres, double latitude) {
  if (metres == 0) return most_steps;
  int steps = 1;
  while (metres < mercator_m) {
    metres *= 2;
    ++steps;
  }
  steps -= 2;
  // Meridians come closer together towards the poles.
  if (std::fabs(latitude) > 66) --steps;
  if (std::fabs(latitude) > 80) --steps;
  return static_cast<unsigned>(std::clamp(steps, 1, static_cast<int>(most_steps)));
}

Area bounds_of_polygon(const std::vector<Place>& corners) {
  const auto [west, east] = std::ranges::minmax(corners, {}, &Place::longitude);
  const auto [south, north] = std::ranges::minmax(corners, {}, &Place::latitude);
  return {{west.longitude, east.longitude}, {south.latitude, north.latitude}};
}

// Whether a ray to the east crosses the polygon's sides an odd number of times.
bool inside(const std::vector<Place>& corners, Place place) {
  bool odd = false;
  Place from = corners.back();
  for (const Place to : corners) {
    if ((from.latitude > place.latitude) != (to.latitude > place.latitude)) {
      const double share = (place.latitude - from.latitude) / (to.latitude - from.latitude);
      if (place.longitude < from.longitude + share * (to.longitude - from.longitude)) odd = !odd;
    }
    from = to;
  }
  return odd;
}

Area bounds_of(const Shape& shape) {
  if (shape.kind == Shape::Kind::polygon) return bounds_of_polygon(shape.corners);
  const bool circle = shape.kind == Shape::Kind::circle;
  const double height = shape.metres * (circle ? shape.radius : shape.height / 2);
  const double width = shape.metres * (circle ? shape.radius : shape.width / 2);
  const auto [longitude, latitude] = shape.centre;
  const double up = height / earth_radius_m / radians;
  // The parallel that is the shorter one of the shape's two decides.
  const double parallel = latitude < 0 ? latitude - up : latitude + up;
  const double aside = width / earth_radius_m / std::cos(parallel * radians) / radians;
  return {{longitude - aside, longitude + aside}, {latitude - up, latitude + up}};
}

// In metres, from the centre.
double reach_of(const Shape& shape) {
  const double half_width = shape.width / 2;
  const double half_height = shape.height / 2;
  double reach = 0;
  switch (shape.kind) {
    case Shape::Kind::circle:
      return shape.radius * shape.metres;
    case Shape::Kind::box:
      return std::sqrt(half_width * half_width + half_height * half_height) * shape.metres;
    case Shape::Kind::polygon:
      for (const Place corner : shape.corners) reach = std::max(reach, distance(shape.centre, corner));
  }
  return reach;
}

bool neighbours_cover(Cell cell, const Area& bounds) {
  return area_of(neighbour(cell, 0, 1)).latitude.high >= bounds.latitude.high &&
         area_of(neighbour(cell, 0, -1)).latitude.low <= bounds.latitude.low &&
         area_of(neighbour(cell, 1, 0)).longitude.high >= bounds.longitude.high &&
         area_of(neighbour(cell, -1, 0)).longitude.low <= bounds.longitude.low;
}

struct Direction {
  int east, north;
};
constexpr std::array<Direction, 8> directions{
    {{0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}}};

}  // namespace

bool on_the_map(Place place) {
  return std::fabs(place.longitude) <= most_longitude && std::fabs(place.latitude) <= most_latitude;
}

double score_of(Place place) { return static_cast<double>(cell_at(place, most_steps, web_map).bits); }

Place place_of(double score) {
  const Area area = area_of({bits_of_score(score), most_steps});
  const auto middle = [](Range range, double most) {
    return std::clamp((range.low + range.high) / 2, -most, most);
  };
  return {middle(area.longitude, most_longitude), middle(area.latitude, most_latitude)};
}

// The haversine formula.
double distance(Place a, Place b) {
  const double v = std::sin((b.longitude * radians - a.longitude * radians) / 2);
  if (v == 0) return latitude_distance(a.latitude, b.latitude);
  const double a_latitude = a.latitude * radians;
  const double b_latitude = b.latitude * radians;
  const double u = std::sin((b_latitude - a_latitude) / 2);
  const double square = u * u + std::cos(a_latitude) * std::cos(b_latitude) * v * v;
  return 2.0 * earth_radius_m * std::asin(std::min(std::sqrt(square), 1.0));
}

std::string geohash_text(Place place) {
  constexpr std::string_view alphabet = "0123456789bcdefghjkmnpqrstuvwxyz";
  const std::uint64_t bits = cell_at(place, most_steps, whole_earth).bits;
  std::string text;
  for (unsigned shift = 47; text.size() < 10; shift -= 5) text += alphabet[bits >> shift & 0x1f];
  return text + '0';  // 52 bits are ten characters and a little
}

bool Shape::holds(Place place, double& away) const {
  if (kind == Kind::circle) {
    away = distance(centre, place);
    return away <= radius * metres;
  }
  if (kind == Kind::polygon) {
    away = distance(centre, place);
    return inside(corners, place);
  }
  if (latitude_distance(place.latitude, centre.latitude) > height * metres / 2) return false;
  if (distance(place, {centre.longitude, place.latitude}) > width * metres / 2) return false;
  away = distance(centre, place);
  return true;
}

std::vector<ScoreRange> ranges_around(const Shape& shape) {
  const Area bounds = bounds_of(shape);
  unsigned steps = steps_for(reach_of(shape), shape.centre.latitude);
  Cell middle = cell_at(shape.centre, steps, web_map);
  // One step is enough for circles and boxes; a polygon may reach further to one side.
  for (bool again = true; again && steps > 1 && !neighbours_cover(middle, bounds);) {
    middle = cell_at(shape.centre, --steps, web_map);
    again = shape.kind == Shape::Kind::polygon;
  }
  const Area area = area_of(middle);

  std::vector<ScoreRange> ranges;
  const auto take = [&](Cell cell) {
    ranges.push_back({static_cast<double>(as_score(cell.bits, steps)),
                      static_cast<double>(as_score(cell.bits + 1, steps))});
  };
  take(middle);
  std::optional<Cell> before;
  for (const auto [east, north] : directions) {
    // On a side where the shape ends inside the middle cell nothing is looked for.
    const bool useless = (north < 0 && area.latitude.low < bounds.latitude.low) ||
                         (north > 0 && area.latitude.high > bounds.latitude.high) ||
                         (east < 0 && area.longitude.low < bounds.longitude.low) ||
                         (east > 0 && area.longitude.high > bounds.longitude.high);
    if (steps >= 2 && useless) continue;
    const Cell cell = neighbour(middle, east, north);
    // On a map of four cells the one to the east is the one to the west.
    if (before != cell) take(cell);
    before = cell;
  }
  return ranges;
}

}  // namespace weir::kv::geo

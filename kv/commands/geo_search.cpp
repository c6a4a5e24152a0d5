// Places as members of sorted sets: finding those in a circle, a box or a polygon. GEOSEARCH, GEOSEARCHSTORE
// and the older GEORADIUS family share these options; each accepts a part of them.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/command/option_walk.hpp"
#include "kv/commands/collection.hpp"
#include "kv/commands/geo_words.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

// The commands, by the arguments that they take.
enum class SearchForm : std::uint8_t { around_place, around_member, search, search_store };

struct SearchOptions {
  geo::Shape shape;
  bool from_member = false, from_place = false, by_radius = false, by_box = false, by_polygon = false;
  bool with_distance = false, with_hash = false, with_place = false;
  enum class Order : std::uint8_t { as_found, nearest, farthest } order = Order::as_found;
  std::size_t most = 0;  // 0: all
  bool any = false;      // any matches, not the nearest
  std::optional<std::string_view> destination;
  bool store_distance = false;
};

// Reads the words of one call, starting at `at_`. Each function replies with the error if a word is wrong.
class SearchReader {
 public:
  SearchReader(const Call& call, SearchForm form, bool stores, SortedSet* zset, SearchOptions& options)
      : call_(call), form_(form), stores_(stores), zset_(zset), options_(options) {}

  bool read() {
    if (!read_fixed()) return false;
    return (searches() ? read_search_options() : read_older_options()) && consistent();
  }

 private:
  bool searches() const { return form_ == SearchForm::search || form_ == SearchForm::search_store; }
  bool wrong(const std::string& error) {
    call_.reply.error(error);
    return false;
  }
  bool is(std::string_view word, std::size_t values = 0) const {
    return is_word(call_[at_], word) && call_.count() - at_ > values;
  }

  // Reads the words before the options.
  bool read_fixed() {
    switch (form_) {
      case SearchForm::around_place:
        at_ = 4;
        return parse_place(call_, 2, options_.shape.centre) && read_radius();
      case SearchForm::around_member:
        at_ = 3;
        // Without the key the radius is not even parsed.
        if (zset_ == nullptr) return at_ = 5, true;
        return read_member(2) && read_radius();
      case SearchForm::search:
        return at_ = 2, true;
      case SearchForm::search_store:
        options_.destination = call_[1];
        return at_ = 3, true;
    }
    return false;
  }

  bool read_member(std::size_t at) {
    const auto place = place_of_member(zset_, call_[at]);
    if (!place) return wrong("ERR could not decode requested zset member");
    options_.shape.centre = *place;
    return true;
  }
  // Reads "radius unit".
  bool read_radius() {
    geo::Shape& shape = options_.shape;
    if (!call_.number(at_, shape.radius, "ERR need numeric radius")) return false;
    if (shape.radius < 0) return wrong("ERR radius cannot be negative");
    shape.kind = geo::Shape::Kind::circle;
    at_ += 2;
    return parse_unit(call_, at_ - 1, shape.metres);
  }
  // Reads "width height unit".
  bool read_box() {
    geo::Shape& shape = options_.shape;
    if (!call_.number(at_, shape.width, "ERR need numeric width")) return false;
    if (!call_.number(at_ + 1, shape.height, "ERR need numeric height")) return false;
    if (shape.width < 0 || shape.height < 0) return wrong("ERR height or width cannot be negative");
    shape.kind = geo::Shape::Kind::box;
    at_ += 3;
    return parse_unit(call_, at_ - 1, shape.metres);
  }
  // Reads "num-vertices longitude latitude [longitude latitude ...]".
  bool read_polygon() {
    std::int64_t corners = 0;
    if (!call_.integer(at_++, corners)) return false;
    constexpr std::size_t least_corners = 3;
    if (corners < static_cast<std::int64_t>(least_corners) || (call_.count() - at_) / 2 < least_corners)
      return wrong("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices");
    if (static_cast<std::uint64_t>(corners) > (call_.count() - at_) / 2) return call_.syntax_error(), false;
    geo::Shape& shape = options_.shape;
    shape.kind = geo::Shape::Kind::polygon;
    for (; corners > 0; --corners, at_ += 2) {
      if (!parse_place(call_, at_, shape.corners.emplace_back())) return false;
    }
    // Distances are from the middle of the corners.
    const auto count = static_cast<double>(shape.corners.size());
    for (const geo::Place corner : shape.corners) {
      shape.centre.longitude += corner.longitude / count;
      shape.centre.latitude += corner.latitude / count;
    }
    return true;
  }
  bool read_count(std::size_t at) {
    std::int64_t count = 0;
    if (!call_.integer(at, count)) return false;
    if (count <= 0) return wrong("ERR COUNT must be > 0");
    options_.most = static_cast<std::size_t>(count);
    return true;
  }

  // An option without a value that all commands have.
  bool set_flag(std::string_view word) {
    using enum SearchOptions::Order;
    if (is_word(word, "WITHDIST")) return options_.with_distance = true;
    if (is_word(word, "WITHHASH")) return options_.with_hash = true;
    if (is_word(word, "WITHCOORD")) return options_.with_place = true;
    if (is_word(word, "ANY")) return options_.any = true;
    if (is_word(word, "ASC")) return options_.order = nearest, true;
    if (is_word(word, "DESC")) return options_.order = farthest, true;
    return false;
  }
  bool read_search_options() {
    while (at_ < call_.count()) {
      if (set_flag(call_[at_])) {
        ++at_;
      } else if (is("COUNT", 1)) {
        at_ += 2;
        if (!read_count(at_ - 1)) return false;
      } else if (!read_shape_word()) {
        return false;
      }
    }
    return true;
  }
  // The older commands name the destination among their options.
  bool read_older_options() {
    const bool at_member = form_ == SearchForm::around_member;
    OptionWalk walk(at_member ? georadiusbymember_options : georadius_options, call_.arguments);
    while (walk.next()) {
      if (set_flag(walk.option().word)) continue;
      if (walk.is("COUNT")) {
        if (!read_count(walk.value())) return false;
      } else if (stores_) {
        options_.destination = call_[walk.value()];
        options_.store_distance = walk.is("STOREDIST");
      } else {
        return call_.syntax_error(), false;
      }
    }
    if (walk.wrong()) call_.syntax_error();
    return !walk.wrong();
  }
  bool read_shape_word() {
    if (form_ == SearchForm::search_store && is("STOREDIST")) return ++at_, options_.store_distance = true;
    const bool by_others =
        options_.by_radius || options_.by_box || options_.from_member || options_.from_place;
    if (is("BYPOLYGON", 1) && !by_others && !options_.by_polygon)
      return ++at_, options_.by_polygon = true, read_polygon();
    // A polygon says where it is.
    if (options_.by_polygon) return call_.syntax_error(), false;
    if (is("FROMMEMBER", 1) && !options_.from_place) {
      options_.from_member = true;
      at_ += 2;
      return zset_ == nullptr || read_member(at_ - 1);
    }
    if (is("FROMLONLAT", 2) && !options_.from_member) {
      options_.from_place = true;
      at_ += 3;
      return parse_place(call_, at_ - 2, options_.shape.centre);
    }
    if (is("BYRADIUS", 2) && !options_.by_box) return ++at_, options_.by_radius = true, read_radius();
    if (is("BYBOX", 3) && !options_.by_radius) return ++at_, options_.by_box = true, read_box();
    return call_.syntax_error(), false;
  }

  bool consistent() {
    const SearchOptions& o = options_;
    if (o.destination && (o.with_distance || o.with_hash || o.with_place)) {
      return wrong(std::string("ERR ") +
                   (form_ == SearchForm::search_store ? "GEOSEARCHSTORE" : "STORE option in GEORADIUS") +
                   " is not compatible with WITHDIST, WITHHASH and WITHCOORD options");
    }
    const std::string name(up_to_zero(call_[0]));
    if (searches() && !o.from_member && !o.from_place && !o.by_polygon)
      return wrong("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + name);
    if (searches() && !o.by_radius && !o.by_box && !o.by_polygon)
      return wrong("ERR exactly one of BYRADIUS and BYBOX can be specified for " + name);
    if (o.any && o.most == 0) return wrong("ERR the ANY argument requires COUNT argument");
    return true;
  }

  const Call& call_;
  SearchForm form_;
  bool stores_;
  SortedSet* zset_;
  SearchOptions& options_;
  std::size_t at_ = 0;
};

struct FoundPlace {
  StoredText member;
  double score;
  geo::Place place;
  double away;  // in metres
};

std::vector<FoundPlace> find_inside(const SortedSet& zset, const SearchOptions& options) {
  const std::size_t enough = options.any ? options.most : 0;
  std::vector<FoundPlace> found;
  for (const auto [low, high] : geo::ranges_around(options.shape)) {
    const std::size_t first = zset.count_scores([least = low](double score) { return score < least; });
    zset.for_each(Ranks{first, zset.size()}, Walk::forward,
                  [&, limit = high](const StoredText& member, double score) {
                    if (score >= limit) return false;
                    FoundPlace one{member, score, geo::place_of(score), 0};
                    if (options.shape.holds(one.place, one.away)) found.push_back(one);
                    return enough == 0 || found.size() < enough;
                  });
    if (enough != 0 && found.size() >= enough) break;
  }
  return found;
}

// Sorts as requested and cuts to the requested number. Equal distances keep the order in
// which they were found.
void arrange(std::vector<FoundPlace>& found, const SearchOptions& options) {
  const std::size_t wanted = options.most == 0 ? found.size() : std::min(options.most, found.size());
  using enum SearchOptions::Order;
  // To keep the nearest few, all must be sorted.
  const auto order = options.order == as_found && options.most != 0 && !options.any ? nearest : options.order;
  if (order == nearest) std::ranges::stable_sort(found, {}, &FoundPlace::away);
  if (order == farthest) std::ranges::stable_sort(found, std::greater(), &FoundPlace::away);
  found.resize(wanted);
}

void reply_found(const Call& call, const std::vector<FoundPlace>& found, const SearchOptions& options) {
  const std::size_t more =
      (options.with_distance ? 1u : 0u) + (options.with_hash ? 1u : 0u) + (options.with_place ? 1u : 0u);
  call.reply.array(found.size());
  for (const FoundPlace& one : found) {
    if (more != 0) call.reply.array(1 + more);
    call.reply.bulk(one.member);
    if (options.with_distance) reply_distance(call, one.away / options.shape.metres);
    if (options.with_hash) reply_hash(call, one.score);
    if (options.with_place) reply_place(call, one.place);
  }
}

void store_found(const Call& call, const std::vector<FoundPlace>& found, const SearchOptions& options) {
  constexpr SmallLimits never_small{0, 0};
  SortedSet result;
  for (const FoundPlace& one : found) {
    const double score = options.store_distance ? one.away / options.shape.metres : one.score;
    if (!result.find(one.member)) result.insert(one.member, score, never_small);
  }
  result.make_small_within(zset_limits(call));
  call.reply.integer(
      static_cast<std::int64_t>(store_collection(call, *options.destination, std::move(result))));
}

void search(const Call& call, SearchForm form, bool stores) {
  SortedSet* zset = nullptr;
  if (!read_as(call, call[form == SearchForm::search_store ? 2 : 1], zset)) return;
  SearchOptions options;
  if (!SearchReader(call, form, stores, zset, options).read()) return;
  std::vector<FoundPlace> found;
  if (zset != nullptr) found = find_inside(*zset, options);
  arrange(found, options);
  options.destination ? store_found(call, found, options) : reply_found(call, found, options);
}

void georadius(const Call& call) { search(call, SearchForm::around_place, true); }
void georadius_ro(const Call& call) { search(call, SearchForm::around_place, false); }
void georadiusbymember(const Call& call) { search(call, SearchForm::around_member, true); }
void georadiusbymember_ro(const Call& call) { search(call, SearchForm::around_member, false); }
void geosearch(const Call& call) { search(call, SearchForm::search, false); }
void geosearchstore(const Call& call) { search(call, SearchForm::search_store, true); }

}  // namespace

std::span<const Command> geo_search_commands() {
  using namespace flag;
  constexpr std::uint32_t store = write | denyoom;
  static constexpr Command commands[] = {
      {"georadius", -6, store | movablekeys, 1, 1, 1, georadius, "geo",
       "Returns or stores the members around a place."},
      {"georadius_ro", -6, readonly, 1, 1, 1, georadius_ro, "geo", "Returns the members around a place."},
      {"georadiusbymember", -5, store | movablekeys, 1, 1, 1, georadiusbymember, "geo",
       "Returns or stores the members around a member."},
      {"georadiusbymember_ro", -5, readonly, 1, 1, 1, georadiusbymember_ro, "geo",
       "Returns the members around a member."},
      {"geosearch", -7, readonly, 1, 1, 1, geosearch, "geo",
       "Returns the members in a circle, a box or a polygon."},
      {"geosearchstore", -8, store, 1, 2, 1, geosearchstore, "geo",
       "Stores the members in a circle, a box or a polygon."},
  };
  return commands;
}

}  // namespace weir::kv

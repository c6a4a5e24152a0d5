// C++ values as MessagePack: the bytes, decoding them, and what is refused.
#include "rpc/codec/codec.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <map>
#include <set>
#include <unordered_map>

#include "rpc/codec/schema.hpp"

namespace far_away {
struct Point {
  double distance = 0;
};
}  // namespace far_away

namespace weir::rpc {
namespace {

struct Point {
  std::int32_t x = 0;
  std::int32_t y = 0;
  bool operator==(const Point&) const = default;
};
struct Shape {
  std::string name;
  std::vector<Point> points;
  std::optional<double> area;
  bool operator==(const Shape&) const = default;
};
struct Node {
  int value = 0;
  std::vector<Node> children;
  bool operator==(const Node&) const = default;
};
template <class T>
struct Page {
  std::vector<T> rows;
  std::uint32_t next = 0;
};
struct LaterPoint {
  std::int32_t x = 0;
  std::int32_t y = 0;
  std::int32_t z = 17;
};
enum class Level : std::int8_t { low = -1, high = 1 };

class Celsius {
 public:
  Celsius() = default;
  explicit Celsius(double degrees) : degrees_(degrees) {}
  double degrees() const { return degrees_; }
  bool operator==(const Celsius&) const = default;

 private:
  double degrees_ = 0;
};

}  // namespace

template <>
struct Wire<Celsius> {
  static constexpr std::string_view schema = "f64";
  static void write(MsgpackWriter& to, const Celsius& value) { to.real64(value.degrees()); }
  static bool read(MsgpackReader& from, Celsius& value) {
    double degrees = 0;
    if (!from.real(degrees)) return false;
    if (degrees < -273.15) return from.fail("colder than possible");
    value = Celsius(degrees);
    return true;
  }
};

namespace {

template <class T>
std::string bytes_of(const T& value) {
  Bytes out;
  MessagePack::write(out, value);
  if constexpr (!Custom<T>) {
    EXPECT_EQ(MessagePack::size(value).bytes, out.size());
  }
  std::string text;
  for (const std::byte b : out.span()) {
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", std::to_integer<unsigned>(b));
    text += pair;
  }
  return text;
}

template <class T>
void there_and_back(const T& value) {
  Bytes out;
  MessagePack::write(out, value);
  T back{};
  const auto read = MessagePack::read(out.span(), back);
  EXPECT_TRUE(read) << read.error().what;
  EXPECT_EQ(back, value);
}

template <class To, class From>
std::string refusal(const From& value) {
  Bytes out;
  MessagePack::write(out, value);
  To back{};
  const auto read = MessagePack::read(out.span(), back);
  return read ? "accepted" : read.error().what;
}

TEST(Codec, bytes_are_what_other_languages_expect) {
  EXPECT_EQ(bytes_of(Point{1, -1}), "9201ff");
  EXPECT_EQ(bytes_of(Shape{"s", {{1, 2}}, {}}), "93a17391920102c0");
  EXPECT_EQ(bytes_of(std::variant<int, std::string>("a")), "9201a161");
  EXPECT_EQ(bytes_of(std::map<std::string, int>{{"a", 1}}), "81a16101");
  EXPECT_EQ(bytes_of(std::vector<std::uint8_t>{1, 2}), "c4020102");
  EXPECT_EQ(bytes_of(Level::low), "ff");
  EXPECT_EQ(bytes_of(std::tuple<int, bool>(1, true)), "9201c3");
  EXPECT_EQ(bytes_of(std::chrono::milliseconds(5)), "05");
}

TEST(Codec, values_come_back_as_they_were) {
  there_and_back(true);
  there_and_back(std::uint64_t{UINT64_MAX});
  there_and_back(std::int64_t{INT64_MIN});
  there_and_back(1.5f);
  there_and_back(-2.25);
  there_and_back(std::string("text\0with zero", 14));
  there_and_back(Level::high);
  there_and_back(std::optional<int>());
  there_and_back(std::optional<std::string>("x"));
  there_and_back(std::variant<std::monostate, int, Shape>(Shape{"t", {}, 1.5}));
  there_and_back(std::vector<bool>{true, false});
  there_and_back(std::vector<Shape>{{"a", {{1, 2}, {3, 4}}, 0.5}, {"b", {}, {}}});
  there_and_back(std::list<std::string>{"a", "b"});
  there_and_back(std::set<int>{3, 1, 2});
  there_and_back(std::unordered_map<std::string, std::vector<int>>{{"a", {1}}, {"b", {}}});
  there_and_back(std::array<int, 3>{1, 2, 3});
  there_and_back(std::array<std::byte, 2>{std::byte{1}, std::byte{2}});
  there_and_back(std::vector<std::byte>(300));
  there_and_back(std::pair<int, std::string>(1, "x"));
  there_and_back(Node{1, {{2, {}}, {3, {{4, {}}}}}});
  there_and_back(std::chrono::nanoseconds(-5));
  there_and_back(Celsius(36.6));
}

// std::hash of an integer is the integer, and libstdc++'s bucket counts are known: 42,043 keys in one bucket
// took seconds.
TEST(Codec, refuses_keys_that_gather_in_one_bucket) {
  constexpr std::uint64_t bucket_count = 42043;  // one of the sizes that a table grows through
  std::map<std::uint64_t, int> gathered;
  std::map<std::uint64_t, int> spread;
  for (std::uint64_t i = 1; i <= bucket_count; ++i) {
    gathered.emplace(i * bucket_count, 1);
    spread.emplace(i, 1);
  }
  using Standard = std::unordered_map<std::uint64_t, int>;
  EXPECT_NE(refusal<Standard>(gathered).find("weir::hash::Keyed"), std::string::npos);
  EXPECT_EQ(refusal<Standard>(spread), "accepted");

  Bytes out;
  MessagePack::write(out, gathered);
  std::unordered_map<std::uint64_t, int, hash::Keyed> keyed;
  ASSERT_TRUE(MessagePack::read(out.span(), keyed));
  EXPECT_EQ(keyed.size(), gathered.size());
  std::size_t longest = 0;
  for (std::size_t i = 0; i < keyed.bucket_count(); ++i) longest = std::max(longest, keyed.bucket_size(i));
  EXPECT_LT(longest, 20u);
}

TEST(Codec, aggregates_grow_at_their_end) {
  Bytes older, newer;
  MessagePack::write(older, Point{1, 2});
  LaterPoint later;
  ASSERT_TRUE(MessagePack::read(older.span(), later));
  EXPECT_EQ(later.z, 17) << "the default";
  MessagePack::write(newer, LaterPoint{1, 2, 3});
  Point point;
  ASSERT_TRUE(MessagePack::read(newer.span(), point));
  EXPECT_EQ(point, (Point{1, 2}));
}

TEST(Codec, aggregates_are_read_from_maps_by_name) {
  Bytes out;
  MessagePack::write(out, std::map<std::string, int>{{"y", 2}, {"x", 1}, {"colour", 7}});
  Point point;
  const auto read = MessagePack::read(out.span(), point);
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(point, (Point{1, 2}));
}

TEST(Codec, refusals_say_where_and_why) {
  EXPECT_EQ(refusal<std::uint8_t>(300), "an integer out of the range of its type");
  EXPECT_EQ(refusal<std::uint32_t>(-1), "expected an integer of 0 or more, found a negative one");
  EXPECT_EQ(refusal<std::int8_t>(-129), "an integer out of the range of its type");
  EXPECT_EQ(refusal<float>(1e39), "a number out of the range of its type");
  EXPECT_EQ(refusal<float>(-1e300), "a number out of the range of its type");
  EXPECT_EQ(refusal<std::int64_t>(UINT64_MAX), "an integer beyond 64 bits with a sign");
  EXPECT_EQ(refusal<int>(std::string("1")), "expected an integer, found text");
  EXPECT_EQ(refusal<bool>(1), "expected a boolean, found an integer");
  const auto wrong_point = std::tuple(std::string("s"), std::vector{std::tuple(1, std::string("2"))});
  EXPECT_EQ(refusal<Shape>(wrong_point), "points: element 0: y: expected an integer, found text");
  EXPECT_EQ(refusal<Point>(std::map<std::string, bool>{{"x", true}}),
            "x: expected an integer, found a boolean");
  EXPECT_EQ((refusal<std::tuple<int, int>>(std::tuple(1))), "expected an array of 2 elements, found 1");
  EXPECT_EQ((refusal<std::variant<int, bool>>(std::tuple(2, 1))), "variant: a variant has no alternative 2");
  EXPECT_EQ((refusal<std::array<std::byte, 2>>(std::vector<std::byte>(3))), "expected 2 bytes, found 3");
  EXPECT_EQ(refusal<Celsius>(-300.0), "colder than possible");
}

TEST(Codec, depth_is_bounded) {
  Node deep;
  for (int i = 0; i < 200; ++i) {
    Node outer;
    outer.children.push_back(std::move(deep));
    deep = std::move(outer);
  }
  EXPECT_NE(refusal<Node>(deep).find("nested too deeply"), std::string::npos);
}

TEST(Codec, views_point_into_the_body) {
  Bytes out;
  MessagePack::write(out, std::tuple(std::string("abc"), std::vector<std::byte>(3)));
  std::tuple<std::string_view, std::span<const std::byte>> views;
  ASSERT_TRUE(MessagePack::read(out.span(), views));
  EXPECT_EQ(std::get<0>(views), "abc");
  EXPECT_GE(static_cast<const void*>(std::get<0>(views).data()), out.data());
  EXPECT_EQ(std::get<1>(views).size(), 3u);
}

TEST(Codec, bytes_left_over_are_an_error) {
  Bytes out;
  MessagePack::write(out, 1);
  MessagePack::write(out, 2);
  int one = 0;
  EXPECT_EQ(MessagePack::read(out.span(), one).error().what, "bytes left over after the value");
}

TEST(Schema, aggregates_of_templates_are_aggregates) {
  SchemaText text;
  describe<std::tuple<Page<Point>, Page<std::string>, Page<Point>>>(text);
  EXPECT_EQ(
      text.text,
      "(Page_Point{rows: [Point{x: i32, y: i32}], next: u32}, Page_str{rows: [str], next: u32}, Page_Point)");
}

TEST(Schema, types_of_one_name_are_told_apart) {
  SchemaText text;
  describe<std::tuple<Point, far_away::Point, far_away::Point, Point>>(text);
  EXPECT_EQ(text.text, "(Point{x: i32, y: i32}, far_away_Point{distance: f64}, far_away_Point, Point)");
}

TEST(Schema, describes_types) {
  SchemaText text;
  describe<std::tuple<Shape, std::vector<Shape>, std::map<std::string, Level>, Node, std::array<int, 2>,
                      Celsius, std::variant<bool, std::vector<std::byte>>>>(text);
  EXPECT_EQ(text.text,
            "(Shape{name: str, points: [Point{x: i32, y: i32}], area: ?f64}, [Shape], {str: i8<low = -1, "
            "high = 1>}, Node{value: i32, "
            "children: [Node]}, [i32], f64, <bool | bin>)");
}

enum Loose { loose_a, loose_b };
enum class Far : std::uint16_t { near = 3, edge = 63, beyond = 64, far = 1000 };
enum class Switch : bool { off, on };
TEST(Schema, enums_have_the_names_that_can_be_found) {
  SchemaText text;
  describe<std::tuple<Loose, Far, Switch, std::byte>>(text);
  EXPECT_EQ(text.text, "(u32, u16<near = 3, edge = 63>, bool<off = 0, on = 1>, u8)");
  SchemaText older;
  older.enumerators = false;
  describe<std::tuple<Far, Switch>>(older);
  EXPECT_EQ(older.text, "(u16, bool)");
}

struct Named {
  std::string name;
};
struct Tag {};
struct Derived : Point {
  std::int32_t z = 0;
};
struct Tagged : Tag {
  std::int32_t x = 0;
};
struct Text {
  int length = 0;
  char text[10];
  std::string rest;
};
struct LongText {
  char text[1000];
};
struct Table {
  std::string name;
  int cells[3][2];
};
struct Whole {
  Named name;
  Point point;
  std::array<std::byte, 16> id;
  std::variant<std::monostate, std::string, Named> choice;
  std::tuple<bool, float> pair;
  std::span<const std::byte> bytes;
  std::chrono::milliseconds wait;
  Celsius warm;
};

// Types that are refused at compile time, with a hint at Wire.
TEST(Codec, knows_aggregates_whose_fields_it_cannot_take_apart) {
  static_assert(!has_plain_fields<Derived> && !has_plain_fields<Tagged>);
  static_assert(!has_plain_fields<Text> && !has_plain_fields<LongText> && !has_plain_fields<Table>);
  static_assert(has_plain_fields<Whole> && field_count<Whole> == 8);
  static_assert(has_plain_fields<Tag> && has_plain_fields<Node> && has_plain_fields<Shape>);
}

struct Wide {
  std::string a, b, c, d, e, f, g, h;
};

// `elements` of one byte each, decoded into a To with room for `room` bytes.
template <class To>
Result<void> read_many(std::byte each, std::size_t elements, std::size_t room) {
  Bytes body;
  MsgpackWriter(body).array(elements);
  for (std::size_t i = 0; i < elements; ++i) *body.grow(1) = each;
  To values;
  DecodeRoom within{room};
  Result<void> read = MessagePack::read(body.span(), values, within);
  EXPECT_EQ(within.left + within.used, room);
  return read;
}

TEST(Codec, what_values_become_is_charged_before_memory_is_taken) {
  constexpr std::byte empty_array{0x90}, empty_text{0xa0}, one{0x01};
  const auto expect_bound = [](const char* what, auto read, std::size_t bytes_each) {
    EXPECT_TRUE(read(1000 * bytes_each)) << what;
    const Result<void> refused = read(1000 * bytes_each - 1);
    ASSERT_FALSE(refused) << what;
    EXPECT_EQ(refused.error().code, Errc::too_large) << what;
  };
  expect_bound(
      "structs", [&](std::size_t room) { return read_many<std::vector<Wide>>(empty_array, 1000, room); },
      sizeof(Wide));
  expect_bound(
      "texts", [&](std::size_t room) { return read_many<std::vector<std::string>>(empty_text, 1000, room); },
      sizeof(std::string));
  expect_bound(
      "nodes", [&](std::size_t room) { return read_many<std::list<int>>(one, 1000, room); },
      sizeof(int) + node_bytes);
  expect_bound(
      "deques, which are never empty",
      [&](std::size_t room) { return read_many<std::vector<std::deque<int>>>(empty_array, 1000, room); },
      sizeof(std::deque<int>) + 640);
}

TEST(Codec, pairs_texts_and_binaries_are_charged) {
  const std::map<std::string, std::vector<std::byte>> value{
      {std::string(100, 'k'), std::vector<std::byte>(1000)}};
  Bytes body;
  MessagePack::write(body, value);
  for (const std::size_t room : {std::size_t{99}, std::size_t{1100}, std::size_t{1099} + node_bytes}) {
    auto back = value;
    DecodeRoom within{room};
    EXPECT_FALSE(MessagePack::read(body.span(), back, within)) << room;
  }
  auto back = value;
  DecodeRoom within{4000};
  EXPECT_TRUE(MessagePack::read(body.span(), back, within));
  EXPECT_GE(within.used, 1100 + sizeof(std::pair<std::string, std::vector<std::byte>>));
  std::string_view view;  // points into the input
  Bytes text;
  MessagePack::write(text, std::string(1000, 'x'));
  DecodeRoom none{0};
  EXPECT_TRUE(MessagePack::read(text.span(), view, none));
}

}  // namespace
}  // namespace weir::rpc

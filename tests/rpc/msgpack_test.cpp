// MessagePack, compared with the bytes that its specification gives.
#include "rpc/codec/msgpack.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

namespace weir::rpc {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[std::to_integer<unsigned>(b) >> 4];
    text += digits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

std::vector<std::byte> unhex(std::string_view text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}

struct Row {
  const char* name;
  std::function<void(MsgpackWriter&)> write;
  std::string bytes;
};

TEST(Msgpack, writes_the_shortest_form) {
  using W = MsgpackWriter;
  const std::string s31(31, 'a'), s32(32, 'a'), s256(256, 'a'), s65536(65536, 'a');
  const Row rows[] = {
      {"nil", [](W& w) { w.nil(); }, "c0"},
      {"false", [](W& w) { w.boolean(false); }, "c2"},
      {"true", [](W& w) { w.boolean(true); }, "c3"},
      {"0", [](W& w) { w.unsigned_integer(0); }, "00"},
      {"127", [](W& w) { w.unsigned_integer(127); }, "7f"},
      {"128", [](W& w) { w.unsigned_integer(128); }, "cc80"},
      {"255", [](W& w) { w.signed_integer(255); }, "ccff"},
      {"256", [](W& w) { w.unsigned_integer(256); }, "cd0100"},
      {"65536", [](W& w) { w.unsigned_integer(65536); }, "ce00010000"},
      {"2^32", [](W& w) { w.unsigned_integer(1ull << 32); }, "cf0000000100000000"},
      {"-1", [](W& w) { w.signed_integer(-1); }, "ff"},
      {"-32", [](W& w) { w.signed_integer(-32); }, "e0"},
      {"-33", [](W& w) { w.signed_integer(-33); }, "d0df"},
      {"-129", [](W& w) { w.signed_integer(-129); }, "d1ff7f"},
      {"-32769", [](W& w) { w.signed_integer(-32769); }, "d2ffff7fff"},
      {"-2^31-1", [](W& w) { w.signed_integer(-2147483649ll); }, "d3ffffffff7fffffff"},
      {"float", [](W& w) { w.real32(1.5f); }, "ca3fc00000"},
      {"double", [](W& w) { w.real64(1.5); }, "cb3ff8000000000000"},
      {"text", [](W& w) { w.text("ab"); }, "a26162"},
      {"binary", [](W& w) { w.binary(as_bytes("ab")); }, "c4026162"},
      {"array", [](W& w) { w.array(3); }, "93"},
      {"array16", [](W& w) { w.array(16); }, "dc0010"},
      {"array32", [](W& w) { w.array(65536); }, "dd00010000"},
      {"map", [](W& w) { w.map(3); }, "83"},
      {"map16", [](W& w) { w.map(16); }, "de0010"},
  };
  for (const Row& row : rows) {
    Bytes out;
    MsgpackWriter writer(out);
    row.write(writer);
    EXPECT_EQ(hex(out.span()), row.bytes) << row.name;
  }
  for (const auto& [text, head] : {std::pair{s31, "bf"}, std::pair{s32, "d920"}, std::pair{s256, "da0100"},
                                   std::pair{s65536, "db00010000"}}) {
    Bytes out;
    MsgpackWriter(out).text(text);
    EXPECT_EQ(hex(out.span()).substr(0, std::string_view(head).size()), head);
    MsgpackReader reader(out.span());
    std::string_view read;
    EXPECT_TRUE(reader.text(read));
    EXPECT_EQ(read, text);
  }
}

TEST(Msgpack, reads_integers_of_every_form) {
  const std::pair<const char*, std::int64_t> rows[] = {
      {"00", 0},
      {"7f", 127},
      {"cc01", 1},
      {"cd0001", 1},
      {"ce00000001", 1},
      {"cf0000000000000001", 1},
      {"ff", -1},
      {"d0ff", -1},
      {"d1ffff", -1},
      {"d2ffffffff", -1},
      {"d3ffffffffffffffff", -1},
      {"d07f", 127},
      {"d38000000000000000", std::numeric_limits<std::int64_t>::min()}};
  for (const auto& [bytes, value] : rows) {
    const auto raw = unhex(bytes);
    MsgpackReader reader(raw);
    std::int64_t read = 99;
    EXPECT_TRUE(reader.signed_integer(read)) << bytes;
    EXPECT_EQ(read, value) << bytes;
    EXPECT_TRUE(reader.at_end()) << bytes;
  }
}

TEST(Msgpack, skips_any_value) {
  for (const char* bytes : {"c0", "c2", "7f", "cc80", "cb3ff8000000000000", "a26162", "c4026162", "93010203",
                            "82a161c0a16293c0c0c0", "d40102", "d801000102030405060708090a0b0c0d0e0f",
                            "c7020a0b0c", "c800010a0b", "dc0001c0"}) {
    const auto raw = unhex(bytes);
    MsgpackReader reader(raw);
    EXPECT_TRUE(reader.skip()) << bytes << ": " << reader.why();
    EXPECT_TRUE(reader.at_end()) << bytes;
  }
}

// Every prefix of every value fails, and is never read beyond its end (the sanitizers check that).
TEST(Msgpack, cut_off_values_fail) {
  for (const char* bytes :
       {"cc80", "cd0100", "cb3ff8000000000000", "a26162", "c4026162", "93010203", "82a161c0a16293c0c0c0",
        "d40102", "c7020a0b0c", "dc0001c0", "ddffffffff", "dfffffffff", "dbffffffff61"}) {
    const auto raw = unhex(bytes);
    for (std::size_t size = 0; size < raw.size(); ++size) {
      const std::vector<std::byte> cut(raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(size));
      MsgpackReader reader(cut);
      EXPECT_FALSE(reader.skip()) << bytes << " cut to " << size;
      EXPECT_TRUE(reader.failed());
    }
  }
}

TEST(Msgpack, says_what_was_expected_and_what_was_found) {
  const auto raw = unhex("93");
  MsgpackReader reader(raw);
  std::string_view text;
  EXPECT_FALSE(reader.text(text));
  EXPECT_EQ(reader.why(), "expected text, found an array");
  bool other = false;
  EXPECT_FALSE(reader.boolean(other));
  EXPECT_EQ(reader.why(), "expected text, found an array") << "the first reason stays";
}

}  // namespace
}  // namespace weir::rpc

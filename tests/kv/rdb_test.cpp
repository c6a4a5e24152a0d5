// Redis's snapshot format: values survive writing and reading, every old form is understood, and no hostile
// input is accepted or uses much memory.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "kv/rdb/checksum.hpp"
#include "kv/rdb/dump_payload.hpp"
#include "kv/rdb/file_reader.hpp"
#include "kv/rdb/value_encoder.hpp"
#include "kv/store/hash.hpp"
#include "kv/store/list.hpp"
#include "kv/store/set.hpp"
#include "kv/store/stream.hpp"
#include "kv/store/zset.hpp"
#include "kv/text/number.hpp"

namespace weir::kv::rdb {
namespace {

TEST(RdbChecksum, is_that_of_the_specification) {
  EXPECT_EQ(checksum(0, ""), 0u);
  EXPECT_EQ(checksum(0, "123456789"), 0xe9c6d914c4b8d9cau);
  EXPECT_EQ(checksum(checksum(0, "1234"), "56789"), 0xe9c6d914c4b8d9cau);
}

TEST(RdbLength, comes_back) {
  for (const std::uint64_t length :
       {0ull, 63ull, 64ull, 16383ull, 16384ull, 4294967295ull, 4294967296ull, ~0ull}) {
    Encoded encoded;
    encoded.put_length(length);
    std::string bytes;
    encoded.finish(Compression::none, bytes);
    Reader in(bytes);
    EXPECT_EQ(in.length(), length);
    EXPECT_TRUE(in.at_end());
  }
}

TEST(RdbText, takes_the_shortest_form_and_comes_back) {
  const std::vector<std::pair<std::string, std::size_t>> rows = {
      {"", 1},
      {"127", 2},
      {"-129", 3},
      {"2147483647", 5},
      {"2147483648", 11},
      {"abc", 4},
      {std::string(63, 'x'), 12},
      {std::string(1000, 'x'), 22},
  };
  for (const auto& [text, most] : rows) {
    Encoded encoded;
    encoded.put_text(text);
    std::string bytes;
    encoded.finish(Compression::lzf, bytes);
    EXPECT_LE(bytes.size(), most) << text;
    Reader in(bytes);
    EXPECT_EQ(in.text(), text);
    EXPECT_TRUE(in.at_end());
  }
}

// Bytes in Redis's compact forms, from their documentation.
std::string number(std::uint64_t value, std::size_t bytes) {
  return {reinterpret_cast<const char*>(&value), bytes};
}
std::string text_of(std::string_view bytes) {
  Encoded encoded;
  encoded.put_length(bytes.size());
  encoded.put_raw(bytes);
  std::string out;
  encoded.finish(Compression::none, out);
  return out;
}
std::string ziplist(const std::vector<std::string>& entries) {
  std::string body;
  std::size_t before = 0;
  std::size_t last = 10;
  for (const std::string& entry : entries) {
    last = 10 + body.size();
    const std::string whole = (before < 254 ? number(before, 1) : "\xfe" + number(before, 4)) + entry;
    body += whole;
    before = whole.size();
  }
  return number(10 + body.size() + 1, 4) + number(last, 4) + number(entries.size(), 2) + body + "\xff";
}
std::string listpack(const std::vector<std::string>& entries) {
  std::string body;
  for (const std::string& entry : entries) {
    body += entry;
    if (entry.size() <= 127) {
      body += number(entry.size(), 1);
    } else {
      body += number(entry.size() >> 7, 1) + number((entry.size() & 0x7f) | 0x80, 1);
    }
  }
  return number(6 + body.size() + 1, 4) + number(entries.size(), 2) + body + "\xff";
}

struct Form {
  const char* name;
  ValueType type;
  std::string bytes;
  std::string shown;

  friend void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }
};

std::string shown(const Value& value) {
  std::string all;
  const auto add = [&all](std::string_view text) { all.append(text.substr(0, 20)).append(1, ' '); };
  switch (value.type()) {
    case Type::string:
      add(value.text().view());
      break;
    case Type::list:
      value.list().for_each([&](std::string_view element) { return add(element), true; });
      break;
    case Type::set:
      value.set().for_each([&](std::string_view member) { return add(member), true; });
      break;
    case Type::hash:
      value.hash().for_each([&](std::string_view field, std::string_view text) {
        add(field), add(text);
        if (const auto at_ms = value.hash().time_of(field); at_ms != FieldTimes::never)
          all.append("@").append(std::to_string(at_ms)).append(" ");
      });
      break;
    case Type::zset:
      value.zset().for_each([&](std::string_view member, double score) {
        add(member);
        add(format_double(score));
        return true;
      });
      break;
    default:
      break;
  }
  return all;
}

std::vector<Form> forms() {
  const std::string z =
      ziplist({std::string("\x03"
                           "abc"),
               "\xf1", "\xfd", std::string("\xfe\x80"), "\xc0" + number(0xfed4, 2),
               "\xf0" + number(0x800000, 3), "\xd0" + number(0x80000000, 4), "\xe0" + number(1ull << 40, 8),
               std::string("\x41\x00", 2) + std::string(256, 'x'), std::string("\x80\0\0\0\2", 5) + "hi"});
  const std::string z_shown =
      "abc 0 12 -128 -300 -8388608 -2147483648 1099511627776 xxxxxxxxxxxxxxxxxxxx hi ";
  std::string z_fixed = z;
  const std::string l = listpack({std::string("\x7f"),
                                  "\x83"
                                  "abc",
                                  "\xdf\xff", "\xcf\xff", "\xe1\x2c" + std::string(300, 'x'),
                                  std::string("\xf0") + number(2, 4) + "hi", "\xf1" + number(0xfed4, 2),
                                  "\xf2" + number(0x800000, 3), "\xf3" + number(0x80000000, 4),
                                  "\xf4" + number(1ull << 40, 8)});
  const std::string l_shown =
      "127 abc -1 4095 xxxxxxxxxxxxxxxxxxxx hi -300 -8388608 -2147483648 1099511627776 ";
  const std::string pairs =
      "\x01"
      "a";
  const std::string two =
      "\x02"
      "bb";
  return {
      {"list_ziplist", ValueType::list_ziplist, text_of(z), z_shown},
      {"list_of_ziplists", ValueType::list_of_ziplists, "\x02" + text_of(z) + text_of(ziplist({two})),
       z_shown + "bb "},
      {"list_of_listpacks", ValueType::list_of_listpacks, "\x02\x02" + text_of(l) + "\x01" + text_of("plain"),
       l_shown + "plain "},
      {"hash_ziplist", ValueType::hash_ziplist, text_of(ziplist({pairs, two})), "a bb "},
      {"hash_listpack", ValueType::hash_listpack,
       text_of(listpack({"\x81"
                         "a",
                         "\x05"})),
       "a 5 "},
      {"hash_zipmap", ValueType::hash_zipmap,
       text_of(std::string("\x02\x01"
                           "a\x02\x01"
                           "bb-\x01"
                           "c\x00\x00\xff",
                           13)),
       "a bb c  "},
      {"hash_of_valkey", ValueType::hash_of_valkey,
       "\x02" + text_of("a") + text_of("1") + number(~0ull, 8) + text_of("b") + text_of("2") +
           number(4'000'000'000'000, 8),
       "a 1 b 2 @4000000000000 "},
      {"hash_timed", ValueType::hash_timed,
       number(4'000'000'000'000, 8) + "\x03" + std::string(1, '\0') + text_of("a") + text_of("1") + "\x08" +
           text_of("b") + text_of("2") + "\x01" + text_of("c") + text_of("3"),
       "a 1 b 2 @4000000000007 c 3 @4000000000000 "},
      {"hash_timed_listpack", ValueType::hash_timed_listpack,
       number(4'000'000'000'000, 8) + text_of(listpack({"\x81"
                                                        "b",
                                                        "\x02", "\xf4" + number(4'000'000'000'000, 8),
                                                        "\x81"
                                                        "a",
                                                        "\x01", std::string(1, '\0')})),
       "b 2 @4000000000000 a 1 "},
      {"zset_ziplist", ValueType::zset_ziplist,
       text_of(ziplist({pairs,
                        "\x03"
                        "1.5",
                        two, "\xf2"})),
       "bb 1 a 1.5 "},
      {"zset_listpack", ValueType::zset_listpack,
       text_of(listpack({"\x81"
                         "a",
                         "\x84"
                         "-inf"})),
       "a -inf "},
      {"zset_text", ValueType::zset_text,
       "\x03" + text_of("a") + "\xff" + text_of("b") +
           "\x03"
           "1.5" +
           text_of("c") + "\xfe",
       "a -inf b 1.5 c inf "},
      {"set_listpack", ValueType::set_listpack, text_of(listpack({"\x05"})), "5 "},
      {"intset_16", ValueType::set_intset,
       text_of(number(2, 4) + number(2, 4) + number(0xfed4, 2) + number(7, 2)), "-300 7 "},
      {"intset_64", ValueType::set_intset, text_of(number(8, 4) + number(1, 4) + number(1ull << 63, 8)),
       "-9223372036854775808 "},
  };
}

class RdbForm : public ::testing::TestWithParam<Form> {};

TEST_P(RdbForm, is_understood) {
  Reader in(GetParam().bytes);
  const auto value = read_value(in, GetParam().type, {});
  ASSERT_TRUE(value) << in.error().what;
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(shown(*value), GetParam().shown);
}

TEST_P(RdbForm, is_refused_when_it_ends_early) {
  for (std::size_t size = 0; size < GetParam().bytes.size(); ++size) {
    Reader in(std::string_view(GetParam().bytes).substr(0, size));
    EXPECT_FALSE(read_value(in, GetParam().type, {})) << size;
    EXPECT_TRUE(in.failed());
  }
}

// It may become a different value, but always one that can be written and read again.
TEST_P(RdbForm, does_no_harm_with_any_bit_changed) {
  for (std::size_t bit = 0; bit < GetParam().bytes.size() * 8; ++bit) {
    std::string bytes = GetParam().bytes;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    Reader in(bytes, 1 << 20);
    const auto value = read_value(in, GetParam().type, {});
    EXPECT_EQ(value.has_value(), !in.failed());
    if (!value || value->elements() == 0) continue;
    const std::string payload = dump(*value);
    const auto again = restore(*unseal(payload), {}, 1 << 20);
    ASSERT_TRUE(again) << again.error().what;
    EXPECT_EQ(shown(*again), shown(*value));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, RdbForm, ::testing::ValuesIn(forms()),
                         [](const auto& instance) { return std::string(instance.param.name); });

struct Hostile {
  const char* name;
  ValueType type;
  std::string bytes;
  Error::Kind kind;

  friend void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }
};

const std::string very_long = "\x81" + std::string(1, '\x10') + std::string(7, '\0');
const Hostile hostile_rows[] = {
    {"text_of_an_exabyte", ValueType::string, very_long + "x", Error::Kind::truncated},
    {"list_of_an_exa_of_elements", ValueType::list, very_long + "\x01x", Error::Kind::truncated},
    {"text_that_grows_too_much", ValueType::string, std::string("\xc3\x03\x80\x40\0\0\0", 7) + "abc",
     Error::Kind::corrupt},
    {"text_that_may_not_grow_so_much", ValueType::string,
     std::string("\xc3\x80\x10\0\0\0\x80\x20\0\0\0", 11) + "abc", Error::Kind::too_large},
    {"unknown_text", ValueType::string, "\xc4", Error::Kind::corrupt},
    {"no_length", ValueType::list, "\x90", Error::Kind::corrupt},
    {"member_twice", ValueType::set, "\x02\x01x\x01x", Error::Kind::corrupt},
    {"field_twice", ValueType::hash, "\x02\x01x\x01x\x01x\x01x", Error::Kind::corrupt},
    {"field_twice_in_a_hash_of_valkey", ValueType::hash_of_valkey,
     "\x02" + std::string(2, '\0') + number(~0ull, 8) + std::string(2, '\0') + number(~0ull, 8),
     Error::Kind::corrupt},
    {"field_with_a_negative_time_in_a_hash_of_valkey", ValueType::hash_of_valkey,
     "\x01" + std::string(2, '\0') + number(~1ull, 8), Error::Kind::corrupt},
    {"hash_of_valkey_without_its_last_time", ValueType::hash_of_valkey, std::string("\x01\0\0", 3),
     Error::Kind::truncated},
    {"timed_field_twice", ValueType::hash_timed,
     std::string("\x01\0\0\0\0\0\0\0\x02\x01\x01x\x01x\x00\x01x\x01x", 19), Error::Kind::corrupt},
    {"field_with_a_time_beyond_all", ValueType::hash_timed,
     std::string("\xff\xff\xff\xff\xff\xff\xff\x7f\x01\x02\x01x\x01x", 14), Error::Kind::corrupt},
    {"field_with_a_negative_time", ValueType::hash_timed,
     std::string("\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x01x\x01x", 14), Error::Kind::corrupt},
    {"hash_of_an_exa_of_timed_fields", ValueType::hash_timed,
     std::string(8, '\0') + very_long + std::string("\x00\x01x", 3), Error::Kind::truncated},
    {"timed_listpack_of_pairs", ValueType::hash_timed_listpack,
     std::string("\0\0\0\0\0\0\0\0\x0b\x0b\0\0\0\x02\0\x01\x01\x02\x01\xff", 20), Error::Kind::corrupt},
    {"timed_listpack_with_a_text_as_time", ValueType::hash_timed_listpack,
     std::string("\0\0\0\0\0\0\0\0\x0e\x0e\0\0\0\x03\0\x01\x01\x02\x01\x81x\x02\xff", 23),
     Error::Kind::corrupt},
    {"scored_twice", ValueType::zset_text, std::string("\x02\x01x\xfe\x01x\xfe"), Error::Kind::corrupt},
    {"score_is_no_number", ValueType::zset_text, "\x01\x01x\xfd", Error::Kind::corrupt},
    {"stream_with_a_node_of_nonsense", ValueType::stream_2, "\x01\x10" + std::string(16, 'x') + "\x01y",
     Error::Kind::corrupt},
    {"module", ValueType::module_2, "\x81" + std::string(8, 'x'), Error::Kind::unsupported},
    {"unknown_type", static_cast<ValueType>(99), "", Error::Kind::unsupported},
};

class RdbHostile : public ::testing::TestWithParam<Hostile> {};

TEST_P(RdbHostile, is_refused_with_its_reason) {
  Reader in(GetParam().bytes, 1 << 20);
  EXPECT_FALSE(read_value(in, GetParam().type, {}));
  ASSERT_TRUE(in.failed());
  EXPECT_EQ(in.error().kind, GetParam().kind) << in.error().what;
}
INSTANTIATE_TEST_SUITE_P(Rows, RdbHostile, ::testing::ValuesIn(hostile_rows),
                         [](const auto& instance) { return std::string(instance.param.name); });

// Delivers a few bytes at a time, as from a slow file.
class Drops final : public Source {
 public:
  Drops(std::string bytes, std::size_t at_once) : bytes_(std::move(bytes)), at_once_(at_once) {}
  std::size_t read(char* into, std::size_t most) override {
    const std::size_t size = std::min({most, at_once_, bytes_.size() - at_});
    std::memcpy(into, bytes_.data() + at_, size);
    at_ += size;
    return size;
  }

 private:
  std::string bytes_;
  std::size_t at_once_;
  std::size_t at_ = 0;
};

// Redis 5 and 6 store no such count. Redis 7 estimates it as XGROUP CREATE does, and so does the lag that
// clients see.
TEST(RdbStream, of_redis_6_gets_an_estimate_of_what_its_groups_have_read) {
  Encoded out;
  for (const std::uint64_t number : {0, 0, 6, 0, 1})
    out.put_length(number);  // nodes, entries, last id, groups
  out.put_text("readers");
  for (const std::uint64_t number : {6, 0, 0, 0}) out.put_length(number);  // last id, pending, consumers
  std::string bytes;
  out.finish(Compression::none, bytes);
  Reader in(bytes);
  const auto value = read_value(in, ValueType::stream_1, {});
  ASSERT_TRUE(value);
  EXPECT_EQ(value->stream().find_group("readers")->entries_read, 0);
}

// CVE-2026-63639.
TEST(RdbStream, refuses_an_entry_that_two_consumers_have) {
  Encoded out;
  for (const std::uint64_t number : {0, 0, 6, 0, 1})
    out.put_length(number);  // nodes, entries, last id, groups
  out.put_text("readers");
  const std::string id("\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\0", 16);
  for (const std::uint64_t number : {6, 0, 1}) out.put_length(number);  // last id, pending
  out.put_raw(id);
  out.put_milliseconds(1000);
  for (const std::uint64_t number : {1, 2}) out.put_length(number);  // deliveries, consumers
  for (const char* consumer : {"one", "other"}) {
    out.put_text(consumer);
    out.put_milliseconds(1000);
    out.put_length(1);
    out.put_raw(id);
  }
  std::string bytes;
  out.finish(Compression::none, bytes);
  Reader in(bytes);
  EXPECT_FALSE(read_value(in, ValueType::stream_1, {}));
  ASSERT_TRUE(in.failed());
  EXPECT_EQ(in.error().kind, Error::Kind::corrupt) << in.error().what;
}

class Noted final : public Target {
 public:
  void aux(std::string_view name, std::string_view value) override { note("aux", name, value); }
  std::string select(std::uint64_t database) override {
    note("db", std::to_string(database), "");
    return database < 16 ? "" : "no such database";
  }
  void sizes(std::uint64_t keys, std::uint64_t expiring) override {
    note("sizes", std::to_string(keys), std::to_string(expiring));
  }
  std::string record(std::string_view key, Value value, const About& about) override {
    std::string more = shown(value);
    if (about.expires_at_ms) more += "until " + std::to_string(*about.expires_at_ms);
    if (about.idle_s) more += "idle " + std::to_string(*about.idle_s);
    if (about.frequency) more += "used " + std::to_string(*about.frequency);
    note("key", key, more);
    return {};
  }
  std::string function(std::string_view text) override { return note("function", text, ""), std::string(); }
  bool go_on(std::uint64_t) override { return true; }

  std::string all;

 private:
  void note(std::string_view what, std::string_view name, std::string_view more) {
    all.append(what).append(1, ' ').append(name).append(1, ' ').append(more).append(1, '\n');
  }
};

std::string whole_file() {
  Encoded out;
  put_header(out);
  out.put_aux("redis-ver", "7.0.15");
  out.put_opcode(Opcode::function);
  out.put_text("#!lua name=x");
  out.put_opcode(Opcode::module_aux);
  out.put_raw(
      std::string("\x81"
                  "12345678\x02\x01\x01\x05\x05\x03mod\x04"
                  "12345678\x03"
                  "1234\x00",
                  33));
  out.put_opcode(Opcode::database);
  out.put_length(3);
  out.put_opcode(Opcode::sizes);
  out.put_length(2);
  out.put_length(1);
  out.put_opcode(Opcode::expires_at_ms);
  out.put_milliseconds(1700000000123);
  out.put_opcode(Opcode::idle_s);
  out.put_length(77);
  out.put_type(ValueType::string);
  out.put_text("key");
  out.put_text("value");
  out.put_opcode(Opcode::frequency);
  out.put_byte(200);
  out.put_type(ValueType::list);
  out.put_text("empty");
  out.put_length(0);
  out.put_type(ValueType::string);
  out.put_text("long");
  out.put_text(std::string(100, 'y'));
  std::string bytes;
  out.finish(Compression::lzf, bytes);
  return bytes + end_of_file(checksum(0, bytes), true);
}

constexpr std::string_view whole_file_noted =
    "aux redis-ver 7.0.15\nfunction #!lua name=x \ndb 3 \nsizes 2 1\n"
    "key key value until 1700000000123idle 77\nkey long yyyyyyyyyyyyyyyyyyyy \n";

TEST(RdbFile, is_read_whatever_pieces_it_comes_in) {
  for (const std::size_t at_once : {1, 7, 1000}) {
    Drops source(whole_file(), at_once);
    Noted target;
    const auto done = read_file(source, {}, Checked::yes, target);
    ASSERT_TRUE(done) << done.error().what;
    EXPECT_EQ(target.all, whole_file_noted);
  }
}

TEST(RdbFile, is_refused_with_any_byte_changed_or_missing) {
  const std::string good = whole_file();
  for (std::size_t i = 0; i < good.size(); ++i) {
    Noted target;
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    Drops changed(bad, 1000);
    EXPECT_FALSE(read_file(changed, {}, Checked::yes, target)) << i;
    Drops cut(good.substr(0, i), 1000);
    const auto short_of_it = read_file(cut, {}, Checked::yes, target);
    ASSERT_FALSE(short_of_it);
    EXPECT_EQ(short_of_it.error().kind, Error::Kind::truncated) << i;
  }
}

TEST(RdbFile, of_a_node_of_a_valkey_cluster_is_read) {
  Encoded out;
  out.put_raw("VALKEY080");
  out.put_opcode(Opcode::slot_import);
  out.put_text(std::string(40, 'f'));
  out.put_length(2);
  for (const std::uint64_t slot : {0, 5, 100, 16383}) out.put_length(slot);
  out.put_opcode(Opcode::database);
  out.put_length(0);
  out.put_opcode(Opcode::slot_info);
  for (const std::uint64_t number : {12182, 1, 0}) out.put_length(number);
  out.put_type(ValueType::string);
  out.put_text("foo");
  out.put_text("bar");
  std::string bytes;
  out.finish(Compression::lzf, bytes);
  Drops source(bytes + end_of_file(checksum(0, bytes), true), 1000);
  Noted target;
  const auto done = read_file(source, {}, Checked::yes, target);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(target.all, "db 0 \nkey foo bar \n");
}

// Release candidates of Redis 7.4 used Valkey's number of such a hash for a format of their own.
TEST(RdbFile, has_hashes_of_valkey_only_in_a_version_of_valkey) {
  const std::pair<std::string, std::string> rows[] = {{"VALKEY080", "key h f v @4000000000000 \n"},
                                                      {"REDIS0012", ""}};
  for (const auto& [header, noted] : rows) {
    Encoded out;
    out.put_raw(header);
    out.put_type(ValueType::hash_of_valkey);
    out.put_text("h");
    out.put_length(1);
    out.put_text("f");
    out.put_text("v");
    out.put_milliseconds(4'000'000'000'000);
    std::string bytes;
    out.finish(Compression::none, bytes);
    Drops source(bytes + end_of_file(checksum(0, bytes), true), 1000);
    Noted target;
    const auto done = read_file(source, {}, Checked::yes, target);
    EXPECT_EQ(target.all, noted);
    EXPECT_EQ(done.has_value(), !noted.empty());
    if (!done) {
      EXPECT_EQ(done.error().kind, Error::Kind::unsupported);
    }
  }
}

TEST(RdbPayload, has_hashes_of_valkey_only_in_a_version_of_valkey) {
  for (const int version : {12, 80}) {
    std::string payload = std::string(1, static_cast<char>(ValueType::hash_of_valkey)) + "\x01" +
                          text_of("f") + text_of("v") + number(~0ull, 8) +
                          number(static_cast<std::uint64_t>(version), 2);
    payload += number(checksum(0, payload), 8);
    EXPECT_EQ(unseal(payload).has_value(), version == 80) << version;
  }
}

TEST(RdbFile, of_a_newer_version_is_refused_by_its_number) {
  Drops source("REDIS0099", 100);
  Noted target;
  const auto done = read_file(source, {}, Checked::yes, target);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Error::Kind::unsupported);
  EXPECT_NE(done.error().what.find("99"), std::string::npos);
}

}  // namespace
}  // namespace weir::kv::rdb

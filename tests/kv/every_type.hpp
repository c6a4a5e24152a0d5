// A value of every type and encoding that clients can create, and a way to compare it: for tests of
// writing and reading back.
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "tests/kv/redis_program.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {

using Words = std::vector<std::string>;

struct EveryType {
  const char* name;
  std::vector<Words> make;  // makes the value at key "k"
  Words look;
  bool any_order = false;  // the reply's order may differ

  friend void PrintTo(const EveryType& type, std::ostream* out) { *out << type.name; }
};

inline Words numbered(Words words, const std::string& prefix, int count) {
  for (int i = 0; i < count; ++i) words.push_back(prefix + std::to_string(i));
  return words;
}
// Pairs: field0 value0 ..., or with `value` in front: 0 field0 ...
inline Words paired(Words words, const std::string& first, const std::string& second, int count) {
  for (int i = 0; i < count; ++i) {
    words.push_back(first + std::to_string(i));
    words.push_back(second + std::to_string(i));
  }
  return words;
}

inline std::vector<EveryType> every_type() {
  const std::string long_text(70, 'v');
  const std::string binary("\0\r\n\xff\xc0\x80 text", 11);
  const std::string fraction = is_redis_7_0() ? "0.1" : "0.5";
  std::string varied;
  for (int i = 0; i < 20000; ++i) varied += static_cast<char>(i * 7919 % 251);
  return {
      {"text", {{"SET", "k", "some text"}}, {"GET", "k"}},
      {"empty_text", {{"SET", "k", ""}}, {"GET", "k"}},
      {"binary_text", {{"SET", "k", binary}}, {"GET", "k"}},
      {"int8", {{"SET", "k", "-128"}}, {"GET", "k"}},
      {"int16", {{"SET", "k", "32767"}}, {"GET", "k"}},
      {"int32", {{"SET", "k", "-2147483648"}}, {"GET", "k"}},
      {"int64", {{"SET", "k", "9223372036854775807"}}, {"GET", "k"}},
      {"not_quite_an_integer", {{"SET", "k", "007"}}, {"GET", "k"}},
      {"text_that_compresses", {{"SET", "k", std::string(5000, 'a')}}, {"GET", "k"}},
      {"long_text", {{"SET", "k", varied}}, {"GET", "k"}},
      {"small_list",
       {numbered({"RPUSH", "k", binary, "", "-5", "100000"}, "e", 20)},
       {"LRANGE", "k", "0", "-1"}},
      {"large_list", {numbered({"RPUSH", "k"}, long_text, 3000)}, {"LRANGE", "k", "0", "-1"}},
      {"list_of_large_elements", {{"RPUSH", "k", varied, "x", varied + varied}}, {"LRANGE", "k", "0", "-1"}},
      {"integers_of_16_bits", {{"SADD", "k", "1", "-300", "7"}}, {"SMEMBERS", "k"}},
      {"integers_of_32_bits", {{"SADD", "k", "1", "-70000"}}, {"SMEMBERS", "k"}},
      {"integers_of_64_bits", {{"SADD", "k", "1", "-9223372036854775808"}}, {"SMEMBERS", "k"}},
      {"many_integers", {numbered({"SADD", "k"}, "1", 1000)}, {"SMEMBERS", "k"}, true},
      {"set", {numbered({"SADD", "k", binary, long_text}, "m", 20)}, {"SMEMBERS", "k"}, true},
      {"large_set", {numbered({"SADD", "k"}, long_text, 2000)}, {"SMEMBERS", "k"}, true},
      {"small_hash", {paired({"HSET", "k", "-1", binary}, "f", "1", 20)}, {"HGETALL", "k"}},
      {"hash_of_long_values", {paired({"HSET", "k"}, "f", long_text, 20)}, {"HGETALL", "k"}, true},
      {"large_hash", {paired({"HSET", "k"}, "f", "v", 2000)}, {"HGETALL", "k"}, true},
      {"stream",
       {{"XADD", "k", "1-1", "name", "value", "other", "12"},
        {"XADD", "k", "2-5", "name", "again", "other", "-7"},
        {"XADD", "k", "3-0", "more", binary},
        {"XDEL", "k", "2-5"},
        {"XGROUP", "CREATE", "k", "readers", "0"},
        {"XREADGROUP", "GROUP", "readers", "one", "COUNT", "1", "STREAMS", "k", ">"}},
       {"XRANGE", "k", "-", "+"}},
      {"stream_groups",
       {{"XADD", "k", "1-1", "a", "b"},
        {"XADD", "k", "1-2", "a", "b"},
        {"XGROUP", "CREATE", "k", "readers", "0"},
        {"XREADGROUP", "GROUP", "readers", "one", "STREAMS", "k", ">"},
        {"XACK", "k", "readers", "1-1"}},
       {"XINFO", "GROUPS", "k"}},
      {"empty_stream", {{"XADD", "k", "5-0", "a", "b"}, {"XDEL", "k", "5-0"}}, {"XINFO", "STREAM", "k"}},
      {"small_zset",
       {paired({"ZADD", "k", "-inf", "a", "inf", "b", fraction, binary, "-3", "9", "1.0715086071862673e+301",
                "-8"},
               "1", "m", 20)},
       {"ZRANGE", "k", "0", "-1", "WITHSCORES"}},
      {"large_zset",
       {paired({"ZADD", "k", "0.5", long_text}, "1", "m", 2000)},
       {"ZRANGE", "k", "0", "-1", "WITHSCORES"}},
  };
}

// OBJECT ENCODING in the words of Redis 7.0, which has one name for lists of all sizes and another for small
// sets than 7.2 and this server.
inline std::string encoding_of(WireClient& client, const std::string& key) {
  const std::string type = client.call({"TYPE", key});
  const std::string encoding = client.call({"OBJECT", "ENCODING", key});
  if (encoding != "$8\r\nlistpack\r\n") return encoding;
  if (type == "+list\r\n") return "$9\r\nquicklist\r\n";
  return type == "+set\r\n" ? "$9\r\nhashtable\r\n" : encoding;
}

// What a client reads of the value at "k".
inline std::string seen(WireClient& client, const EveryType& value) {
  const std::string reply = client.call(value.look);
  if (!value.any_order) return reply;
  std::vector<std::string> parts = elements(reply);
  // A hash's fields stay with their values.
  const std::size_t step = value.look[0] == "HGETALL" ? 2 : 1;
  std::vector<std::string> units;
  for (std::size_t i = 1; i + step <= parts.size(); i += step)
    units.push_back(step == 2 ? parts[i] + parts[i + 1] : parts[i]);
  std::ranges::sort(units);
  std::string all;
  for (const std::string& unit : units) all += unit;
  return all;
}

}  // namespace weir::kv::testing

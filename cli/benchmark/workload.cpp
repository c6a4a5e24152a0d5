#include "cli/benchmark/workload.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace weir::benchmark {
namespace {

struct Standard {
  std::string_view name;   // its name for -t
  std::string_view title;  // its name in the report
  std::vector<std::string> arguments;
  bool is_inline = false;
  bool only_by_name = false;  // redis-benchmark lacks it
  std::vector<std::string> preparation{};
};

// Runs three commands on one key.
const std::string script =
    "redis.call('SET', KEYS[1], ARGV[1]) redis.call('EXPIRE', KEYS[1], 100) return redis.call('GET', "
    "KEYS[1])";
const std::string script_sha1 = "566f9d2d36014a847a7dd30dfcccbffbf8d0aa52";

const std::string data_mark = "__data__";

std::vector<Standard> all_standard(KeyStyle keys) {
  const std::string tag = keys.tagged ? std::string(":").append(tag_mark) : "";
  const std::string key = "key" + tag + ":__rand_int__";
  const std::string list = "mylist" + tag, set = "myset" + tag, hash = "myhash" + tag,
                    sorted = "myzset" + tag;
  const std::string element = "element:__rand_int__";
  std::vector<Standard> all{
      {"ping_inline", "PING_INLINE", {"PING"}, true},
      {"ping_mbulk", "PING_MBULK", {"PING"}},
      {"set", "SET", {"SET", key, data_mark}},
      {"get", "GET", {"GET", key}},
      {"incr", "INCR", {"INCR", "counter" + tag + ":__rand_int__"}},
      {"lpush", "LPUSH", {"LPUSH", list, data_mark}},
      {"rpush", "RPUSH", {"RPUSH", list, data_mark}},
      {"lpop", "LPOP", {"LPOP", list}},
      {"rpop", "RPOP", {"RPOP", list}},
      {"sadd", "SADD", {"SADD", set, element}},
      {"hset", "HSET", {"HSET", hash, element, data_mark}},
      {"spop", "SPOP", {"SPOP", set}},
      {"zadd", "ZADD", {"ZADD", sorted, keys.random ? "__rand_int__" : "0", element}},
      {"zpopmin", "ZPOPMIN", {"ZPOPMIN", sorted}},
      {"lrange", "LPUSH (needed to benchmark LRANGE)", {"LPUSH", list, data_mark}},
      {"lrange_100", "LRANGE_100 (first 100 elements)", {"LRANGE", list, "0", "99"}},
      {"lrange_300", "LRANGE_300 (first 300 elements)", {"LRANGE", list, "0", "299"}},
      {"lrange_500", "LRANGE_500 (first 500 elements)", {"LRANGE", list, "0", "499"}},
      {"lrange_600", "LRANGE_600 (first 600 elements)", {"LRANGE", list, "0", "599"}},
      {"mset", "MSET (10 keys)", {"MSET"}},
  };
  for (int i = 0; i < 10; ++i) {
    all.back().arguments.push_back(key);
    all.back().arguments.push_back(data_mark);
  }
  const std::string stream = "mystream" + tag, field = "field";
  all.push_back({"xadd", "XADD", {"XADD", stream, "*", field, data_mark}, false, true});
  all.push_back(
      {"xread", "XREAD (first 10 entries)", {"XREAD", "COUNT", "10", "STREAMS", stream, "0"}, false, true});
  all.push_back({"evalsha",
                 "EVALSHA (3 commands)",
                 {"EVALSHA", script_sha1, "1", key, data_mark},
                 false,
                 true,
                 {"SCRIPT", "LOAD", script}});
  return all;
}

bool selected(std::string_view test, std::span<const std::string> names) {
  for (const auto& name : names) {
    if (name == test) return true;
    if (name == "xread" && test == "xadd") return true;  // XADD fills the stream
    if (name == "ping" && test.starts_with("ping_")) return true;
    // Each lrange_N needs the list; lrange alone stands for all of them.
    if (name == "lrange" && test.starts_with("lrange")) return true;
    if (name.starts_with("lrange_") && test == "lrange") return true;
  }
  return false;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

client::Result<std::vector<Workload>> standard_workloads(std::span<const std::string> wanted,
                                                         std::size_t data_bytes, KeyStyle keys) {
  const auto standard = all_standard(keys);
  std::vector<std::string> names;
  for (const auto& name : wanted) {
    names.push_back(lower(name));
    const bool known = names.back() == "ping" || std::ranges::any_of(standard, [&](const Standard& test) {
                         return test.name == names.back();
                       });
    if (!known)
      return client::fail(client::ErrorKind::usage,
                          "no test is called '" + name + "'; the tests are " + names_of_standard_workloads());
  }
  const std::string data(data_bytes, 'x');
  std::vector<Workload> chosen;
  for (const auto& test : standard) {
    if (names.empty() ? test.only_by_name : !selected(test.name, names)) continue;
    chosen.push_back({std::string(test.title), test.arguments, test.is_inline, test.preparation});
    std::ranges::replace(chosen.back().arguments, data_mark, data);
  }
  return chosen;
}

std::string names_of_standard_workloads() {
  std::string names = "ping";
  for (const auto& test : all_standard({})) names.append(", ").append(test.name);
  return names;
}

client::Result<Workload> mixed_workload(const std::string& text, std::size_t data_bytes, KeyStyle keys) {
  constexpr std::size_t most_in_sum = 1000;  // so many requests are built before they repeat
  const auto standard = all_standard(keys);
  const std::string data(data_bytes, 'x');
  Workload mixed;
  mixed.title = "MIX " + text;
  std::size_t sum = 0;
  for (std::size_t start = 0; start <= text.size();) {
    const auto comma = std::min(text.find(',', start), text.size());
    const auto part = text.substr(start, comma - start);
    start = comma + 1;
    const auto colon = std::min(part.find(':'), part.size());
    const auto test = std::ranges::find(standard, lower(part.substr(0, colon)), &Standard::name);
    std::size_t share = 0;
    const char* const end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(part.data() + std::min(colon + 1, part.size()), end, share);
    sum += std::min(share, most_in_sum + 1);
    if (test == standard.end() || error != std::errc{} || stop != end || share == 0 || sum > most_in_sum)
      return client::fail(
          client::ErrorKind::usage,
          "option --mix wants tests and their shares, at most 1000 in sum, as in --mix get:9,set:1; "
          "not '" +
              part + "'; the tests are " + names_of_standard_workloads());
    mixed.mix.push_back({test->arguments, test->is_inline, share});
    std::ranges::replace(mixed.mix.back().arguments, data_mark, data);
    if (!test->preparation.empty()) mixed.preparation = test->preparation;
  }
  return mixed;
}

}  // namespace weir::benchmark

#include "cli/benchmark/workload.hpp"

#include <algorithm>
#include <string>

#include "cli/client/request.hpp"

namespace weir::benchmark {
namespace {

struct Standard {
  std::string_view name;   // as -t takes it
  std::string_view title;  // as the report prints it
  std::vector<std::string> arguments;
  bool is_inline = false;
};

const std::string data_mark = "__data__";

std::vector<Standard> all_standard(bool random_keys) {
  const std::string key = "key:__rand_int__";
  const std::string element = "element:__rand_int__";
  std::vector<Standard> all{
      {"ping_inline", "PING_INLINE", {"PING"}, true},
      {"ping_mbulk", "PING_MBULK", {"PING"}},
      {"set", "SET", {"SET", key, data_mark}},
      {"get", "GET", {"GET", key}},
      {"incr", "INCR", {"INCR", "counter:__rand_int__"}},
      {"lpush", "LPUSH", {"LPUSH", "mylist", data_mark}},
      {"rpush", "RPUSH", {"RPUSH", "mylist", data_mark}},
      {"lpop", "LPOP", {"LPOP", "mylist"}},
      {"rpop", "RPOP", {"RPOP", "mylist"}},
      {"sadd", "SADD", {"SADD", "myset", element}},
      {"hset", "HSET", {"HSET", "myhash", element, data_mark}},
      {"spop", "SPOP", {"SPOP", "myset"}},
      {"zadd", "ZADD", {"ZADD", "myzset", random_keys ? "__rand_int__" : "0", element}},
      {"zpopmin", "ZPOPMIN", {"ZPOPMIN", "myzset"}},
      {"lrange", "LPUSH (needed to benchmark LRANGE)", {"LPUSH", "mylist", data_mark}},
      {"lrange_100", "LRANGE_100 (first 100 elements)", {"LRANGE", "mylist", "0", "99"}},
      {"lrange_300", "LRANGE_300 (first 300 elements)", {"LRANGE", "mylist", "0", "299"}},
      {"lrange_500", "LRANGE_500 (first 500 elements)", {"LRANGE", "mylist", "0", "499"}},
      {"lrange_600", "LRANGE_600 (first 600 elements)", {"LRANGE", "mylist", "0", "599"}},
      {"mset", "MSET (10 keys)", {"MSET"}},
  };
  for (int i = 0; i < 10; ++i) {
    all.back().arguments.push_back(key);
    all.back().arguments.push_back(data_mark);
  }
  return all;
}

bool selected(std::string_view test, std::span<const std::string> names) {
  if (names.empty()) return true;
  for (const auto& name : names) {
    if (name == test) return true;
    if (name == "ping" && test.starts_with("ping_")) return true;
    // Each lrange_N needs the list filled; lrange alone means all of them.
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
                                                         std::size_t data_bytes, bool random_keys) {
  const auto standard = all_standard(random_keys);
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
    if (!selected(test.name, names)) continue;
    chosen.push_back({std::string(test.title), test.arguments, test.is_inline});
    std::ranges::replace(chosen.back().arguments, data_mark, data);
  }
  return chosen;
}

std::string names_of_standard_workloads() {
  std::string names = "ping";
  for (const auto& test : all_standard(false)) names.append(", ").append(test.name);
  return names;
}

RequestBatch::RequestBatch(const Workload& workload, std::size_t requests) {
  std::string request;
  if (workload.is_inline) {
    for (const auto& argument : workload.arguments)
      request.append(request.empty() ? "" : " ").append(argument);
    request += "\r\n";
  } else {
    client::append_request(request, workload.arguments);
  }
  request_bytes_ = request.size();
  bytes_.reserve(request_bytes_ * requests);
  for (std::size_t i = 0; i < requests; ++i) bytes_ += request;
  for (auto at = bytes_.find(random_mark); at != std::string::npos; at = bytes_.find(random_mark, at)) {
    digits_.push_back(at);
    bytes_.replace(at, random_mark.size(), random_mark.size(), '0');
  }
}

void RequestBatch::randomise(std::minstd_rand& random, std::uint64_t keyspace) {
  for (const auto offset : digits_) {
    // Two draws of 31 bits cover any keyspace the 12 digits can show.
    auto number = ((std::uint64_t{random()} << 31) | random()) % keyspace;
    for (std::size_t i = random_mark.size(); i-- > 0; number /= 10)
      bytes_[offset + i] = static_cast<char>('0' + number % 10);
  }
}

}  // namespace weir::benchmark

// The requests of a load: the named tests, alone or mixed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client/error.hpp"

namespace weir::benchmark {

// A 12-character mark that is replaced by a random number of as many digits.
inline constexpr std::string_view random_mark = "__rand_int__";
// Replaced by a hash tag of the request's node, as in redis-benchmark.
inline constexpr std::string_view tag_mark = "{tag}";

struct Workload {
  // A part of a mix: what some of its requests ask.
  struct Part {
    std::vector<std::string> arguments;
    bool is_inline;
    std::size_t share;  // relative to the sum of all shares
  };

  std::string title;                   // in the report: SET
  std::vector<std::string> arguments;  // may hold random_mark
  bool is_inline = false;              // sent as one line instead of an array
  std::vector<std::string>
      preparation{};        // a command that each connection sends once before the load; empty: none
  std::vector<Part> mix{};  // not empty: replaces `arguments`
};

// The form of keys in the standard tests.
struct KeyStyle {
  bool random = false;  // with random_mark
  bool tagged = false;  // with tag_mark: for a cluster
};

// The tests named by -t, in their own order: redis-benchmark's, then those that run only by name. Empty
// `names`: all of redis-benchmark's.
client::Result<std::vector<Workload>> standard_workloads(std::span<const std::string> names,
                                                         std::size_t data_bytes, KeyStyle keys);
std::string names_of_standard_workloads();

// "get:9,set:1": one load with nine GETs per SET. The sum of shares is 1 to 1000.
client::Result<Workload> mixed_workload(const std::string& text, std::size_t data_bytes, KeyStyle keys);

}  // namespace weir::benchmark

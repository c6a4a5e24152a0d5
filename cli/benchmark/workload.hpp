// What is asked of the server: the named tests, alone or mixed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client/error.hpp"

namespace weir::benchmark {

// A 12-character mark that stands for a random number of as many digits.
inline constexpr std::string_view random_mark = "__rand_int__";
// Stands for a hash tag of the node that a request is for, as in redis-benchmark.
inline constexpr std::string_view tag_mark = "{tag}";

struct Workload {
  // Of a mix: what a part of its requests ask.
  struct Part {
    std::vector<std::string> arguments;
    bool is_inline;
    std::size_t share;  // so many of the sum of all shares
  };

  std::string title;                   // as the report prints it: SET
  std::vector<std::string> arguments;  // may hold random_mark
  bool is_inline = false;              // sent as one line instead of an array
  std::vector<std::string>
      preparation{};        // a command that each connection sends before the load; empty: none
  std::vector<Part> mix{};  // not empty: these, and `arguments` does not count
};

// How the keys of a standard test are made up.
struct KeyStyle {
  bool random = false;  // with random_mark
  bool tagged = false;  // with tag_mark: for a cluster
};

// The tests by the names of -t, in their own order: redis-benchmark's, then those that only run by name.
// `names` empty: all that redis-benchmark has.
client::Result<std::vector<Workload>> standard_workloads(std::span<const std::string> names,
                                                         std::size_t data_bytes, KeyStyle keys);
std::string names_of_standard_workloads();

// "get:9,set:1": one load of nine GETs to each SET. Shares are 1 to 1000 in sum.
client::Result<Workload> mixed_workload(const std::string& text, std::size_t data_bytes, KeyStyle keys);

}  // namespace weir::benchmark

// What is asked of the server: the named tests, and requests built once so that a run only sends bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client/error.hpp"

namespace weir::benchmark {

// A 12-character mark that stands for a random number of as many digits.
inline constexpr std::string_view random_mark = "__rand_int__";

struct Workload {
  std::string title;                   // as the report prints it: SET
  std::vector<std::string> arguments;  // may hold random_mark
  bool is_inline = false;              // sent as one line instead of an array
};

// The tests of redis-benchmark by the names of its -t, in its order; `names` empty: all of them.
client::Result<std::vector<Workload>> standard_workloads(std::span<const std::string> names,
                                                         std::size_t data_bytes, bool random_keys);
std::string names_of_standard_workloads();

// Requests back to back, with the places of their random digits known.
class RequestBatch {
 public:
  RequestBatch(const Workload&, std::size_t requests);

  // The first `requests` of them; valid until the batch changes.
  std::span<const std::byte> first(std::size_t requests) const {
    return std::as_bytes(std::span(bytes_)).first(requests * request_bytes_);
  }
  bool has_random_digits() const { return !digits_.empty(); }
  // New digits everywhere, each number below `keyspace`.
  void randomise(std::minstd_rand& random, std::uint64_t keyspace);

 private:
  std::string bytes_;
  std::size_t request_bytes_;
  std::vector<std::size_t> digits_;  // offsets into bytes_
};

}  // namespace weir::benchmark

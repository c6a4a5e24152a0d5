// Requests that are built once, so that a run only sends bytes. They are stored back to back, and the first
// follows the last. Random digits are written in place: a request may change once its reply has arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/benchmark/key_numbers.hpp"
#include "cli/benchmark/workload.hpp"

namespace weir::benchmark {

class RequestRing {
 public:
  // At least `least` requests. Those of a mix are in proportion to its shares, shuffled by `seed`. With tags
  // there are at least as many requests as tags, which replace tag_mark in turn.
  RequestRing(const Workload&, std::size_t least, std::uint64_t seed = 1,
              std::span<const std::string> tags = {});

  std::size_t size() const { return requests_.size() - 1; }
  // `count` requests from `first`, not beyond the end; valid until they are changed.
  std::span<const std::byte> bytes(std::size_t first, std::size_t count) const {
    const auto begin = requests_[first].bytes;
    return std::as_bytes(std::span(bytes_)).subspan(begin, requests_[first + count].bytes - begin);
  }
  bool has_random_digits() const { return !digits_.empty(); }
  // Writes new numbers into those requests.
  void renumber(std::size_t first, std::size_t count, KeyNumbers& numbers);

 private:
  struct Begin {
    std::size_t bytes;   // offset into bytes_
    std::size_t digits;  // index into digits_
  };

  std::string bytes_;
  std::vector<Begin> requests_;      // for each request, and one for the end
  std::vector<std::size_t> digits_;  // offsets into bytes_
};

}  // namespace weir::benchmark

// Requests built once, so that a run only sends bytes. They lie back to back, and after the last comes the
// first again. Random digits are written where they stand: a request may be changed when its reply is here.
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
  // At least `least` requests. Those of a mix stand in its shares, shuffled by `seed`. With tags there are at
  // least as many as tags, which take turns in the place of tag_mark.
  RequestRing(const Workload&, std::size_t least, std::uint64_t seed = 1,
              std::span<const std::string> tags = {});

  std::size_t size() const { return requests_.size() - 1; }
  // `count` requests from `first` on, none of them behind the end; valid until they are changed.
  std::span<const std::byte> bytes(std::size_t first, std::size_t count) const {
    const auto begin = requests_[first].bytes;
    return std::as_bytes(std::span(bytes_)).subspan(begin, requests_[first + count].bytes - begin);
  }
  bool has_random_digits() const { return !digits_.empty(); }
  // New numbers in those requests.
  void renumber(std::size_t first, std::size_t count, KeyNumbers& numbers);

 private:
  struct Begin {
    std::size_t bytes;   // offset into bytes_
    std::size_t digits;  // index into digits_
  };

  std::string bytes_;
  std::vector<Begin> requests_;      // of each request, and of what would follow the last
  std::vector<std::size_t> digits_;  // offsets into bytes_
};

}  // namespace weir::benchmark

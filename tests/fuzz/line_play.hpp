// Plays an input of lines: a Play does what each line says, and at the end everything must have ended.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string_view>

#include "tests/fuzz/rpc_frame_lines.hpp"
#include "tests/fuzz/stepped_clock.hpp"

// Where AddressSanitizer is.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace weir::fuzz {

inline void expect(bool holds, std::source_location at = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u: what is expected there does not hold\n", at.file_name(), at.line());
  std::abort();
}

// That an input makes the heap grow within bounds, 16 MiB being rpc/block_cache.
class HeapWatch {
 public:
  void look() const { expect(allocated() < before_ + most_growth); }

 private:
  static constexpr std::size_t most_growth = 24 << 20;
  static std::size_t allocated() {
    return __sanitizer_get_current_allocated_bytes != nullptr ? __sanitizer_get_current_allocated_bytes() : 0;
  }
  const std::size_t before_ = allocated();
};

// Play(Words options) is made with the first line if that begins so; bool line(text) says whether there is
// more to come, after which end() runs.
template <class Play>
void play_lines(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 4096));
  restart_clock();
  Words options;
  if (input.starts_with("options")) options = words_of(input.substr(0, input.find('\n')));
  Play play(options);
  while (!input.empty()) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    if (!play.line(input.substr(0, end))) return;
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  play.end();
}

// "@250"
inline void pass_as_said(std::string_view line) {
  if (line.starts_with('@'))
    pass(std::chrono::milliseconds(std::min<std::uint64_t>(number_of(line.substr(1)), 100'000)));
}

}  // namespace weir::fuzz

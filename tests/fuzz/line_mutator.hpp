// Mutations of an input that is lines of words: lines of a grammar come and go, words are exchanged.
// Sometimes libFuzzer mutates bytes as ever.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weir::fuzz {

struct Grammar {
  std::span<const std::string_view> lines;
  std::span<const std::string_view> words;  // that go anywhere
};

// For LLVMFuzzerCustomMutator and LLVMFuzzerCustomCrossOver.
std::size_t mutate_lines(const Grammar& grammar, std::uint8_t* data, std::size_t size, std::size_t most,
                         unsigned seed);
std::size_t cross_lines(std::span<const std::uint8_t> one, std::span<const std::uint8_t> other,
                        std::uint8_t* to, std::size_t most, unsigned seed);

}  // namespace weir::fuzz

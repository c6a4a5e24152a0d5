// Mutates an input that consists of lines of words: adds and removes lines of a grammar, and exchanges words.
// Sometimes libFuzzer mutates bytes as usual.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weir::fuzz {

struct Grammar {
  std::span<const std::string_view> lines;
  std::span<const std::string_view> words;  // that go anywhere
};

// Each target defines it; libFuzzer's own entries for mutators are in line_mutator.cpp.
extern const Grammar grammar;

}  // namespace weir::fuzz

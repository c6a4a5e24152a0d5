// Classic BPF, instruction by instruction, for the programs that choose a socket and that filter what comes
// to it.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::link {

using FilterCode = std::vector<sock_filter>;

inline sock_filter instruction(unsigned code, std::uint32_t k) {
  return {static_cast<std::uint16_t>(code), 0, 0, k};
}
// Skips that many instructions. A test reaches over 255 at most, jump_over() over any number.
inline sock_filter jump(unsigned test, std::uint32_t k, unsigned if_so, unsigned otherwise) {
  return {static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), static_cast<std::uint8_t>(if_so),
          static_cast<std::uint8_t>(otherwise), k};
}
inline sock_filter jump_over(std::size_t count) {
  return instruction(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(count));
}
inline sock_filter load_word(std::uint32_t at) { return instruction(BPF_LD | BPF_W | BPF_ABS, at); }
inline sock_filter load_half(std::uint32_t at) { return instruction(BPF_LD | BPF_H | BPF_ABS, at); }
inline sock_filter load_byte(std::uint32_t at) { return instruction(BPF_LD | BPF_B | BPF_ABS, at); }
inline sock_filter load_length() { return instruction(BPF_LD | BPF_W | BPF_LEN, 0); }
inline sock_filter load_interface() {
  return load_word(static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_IFINDEX));
}
inline sock_filter load_random() { return load_word(static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_RANDOM)); }
inline sock_filter shift_right(unsigned bits) { return instruction(BPF_ALU | BPF_RSH | BPF_K, bits); }
inline sock_filter mask(std::uint32_t bits) { return instruction(BPF_ALU | BPF_AND | BPF_K, bits); }
inline sock_filter give(std::uint32_t result) { return instruction(BPF_RET | BPF_K, result); }

inline void append(FilterCode& code, const FilterCode& more) {
  code.insert(code.end(), more.begin(), more.end());
}

struct FoundResult {
  std::uint32_t key = 0, result = 0;
};

// With a key in the accumulator: gives its result, or `missing`. A binary search; `by_key` is sorted.
inline FilterCode find_result(std::span<const FoundResult> by_key, std::uint32_t missing) {
  if (by_key.empty()) return {give(missing)};
  if (by_key.size() == 1) return {jump(BPF_JEQ, by_key[0].key, 0, 1), give(by_key[0].result), give(missing)};
  const auto lower = by_key.first(by_key.size() / 2), upper = by_key.subspan(by_key.size() / 2);
  const FilterCode below = find_result(lower, missing);
  FilterCode code = {jump(BPF_JGT, lower.back().key, 0, 1), jump_over(below.size())};
  append(code, below);
  append(code, find_result(upper, missing));
  return code;
}

}  // namespace weir::link

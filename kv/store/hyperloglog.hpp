// HyperLogLog: how many different elements were seen, in a string of at most 12 KiB, laid out as Redis does.
//
//   "HYLL", encoding, 0, 0, 0, the count as it was last computed (8, little endian; highest bit: it is
//   outdated), registers
//
// An element's hash chooses one of 16384 registers and has some zeros; the register keeps the most. Dense:
// six bits for each register. Sparse: runs of registers, 00nnnnnn of zeros, 01nnnnnn nnnnnnnn of more zeros,
// 1vvvvvnn of equal values; n is one less than how many, v than the value. Clients can store such strings
// themselves, so nothing here trusts them. Threading: none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::kv::hyperloglog {

inline constexpr std::size_t register_count = 16384;
inline constexpr std::size_t header_bytes = 16;
inline constexpr std::size_t dense_bytes = header_bytes + register_count * 6 / 8;

// What an element says: its register holds at least `value`.
struct Observation {
  std::uint32_t index;
  std::uint8_t value;
};
Observation observe(std::string_view element);

// Whether it begins as one and, if dense, has the size of one.
bool looks_valid(std::string_view sketch);
bool is_dense(std::string_view sketch);
std::string empty_sketch();

enum class Outcome : std::uint8_t { unchanged, changed, corrupted };
// `sketch` is dense. True: the register's value was lower.
bool add_to_dense(char* sketch, Observation seen);
// A sparse one becomes dense when it would get larger than `most_sparse_bytes`.
Outcome add(std::string& sketch, Observation seen, std::size_t most_sparse_bytes);
// False: it is corrupted.
bool make_dense(std::string& sketch);

// The count that was computed last, if it still holds.
std::optional<std::uint64_t> known_count(std::string_view sketch);
void note_count(char* sketch, std::uint64_t count);
void forget_count(char* sketch);

// All registers of one or several.
class Registers {
 public:
  // Keeps the higher of each; false: the sketch is corrupted.
  bool merge(std::string_view sketch);
  std::uint64_t count() const;
  std::uint8_t operator[](std::size_t index) const { return values_[index]; }

 private:
  void raise(std::size_t index, std::uint8_t value) {
    if (values_[index] < value) values_[index] = value;
  }

  std::array<std::uint8_t, register_count> values_{};
};

// The runs of a sparse one, as far as there are registers: "Z:100 v:3,1 z:5".
std::string describe(std::string_view sparse);

}  // namespace weir::kv::hyperloglog

// Chooses the next number for a key: uniform, zipf (a few keys are requested most) or sequential.
//
// Deterministic: the same seed gives the same numbers. Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "cli/client/error.hpp"

namespace weir::benchmark {

struct KeyDistribution {
  enum class Shape { uniform, zipf, sequential };

  Shape shape = Shape::uniform;
  double exponent = 0.99;  // of zipf: key k is requested in proportion to 1 / (k + 1)^exponent
};

// "uniform", "zipf", "zipf:1.2" or "sequential".
client::Result<KeyDistribution> key_distribution_named(const std::string& text);

class KeyNumbers {
 public:
  // Numbers below `keyspace`, which is at least 1. Several `sources` may share a load, each with its own
  // `index`; sequential ones then take turns, so that together they cover the keyspace.
  KeyNumbers(KeyDistribution, std::uint64_t keyspace, std::uint64_t seed, std::uint64_t index = 0,
             std::uint64_t sources = 1);

  std::uint64_t next();

 private:
  std::uint64_t draw();  // 62 random bits
  std::uint64_t zipf();
  double area(double rank) const;
  double rank_at(double area) const;

  KeyDistribution distribution_;
  std::uint64_t keyspace_;
  std::minstd_rand random_;
  std::uint64_t at_;                                     // of a sequential source
  std::uint64_t step_;                                   // likewise
  double first_area_ = 0, last_area_ = 0, squeeze_ = 0;  // of zipf
};

}  // namespace weir::benchmark

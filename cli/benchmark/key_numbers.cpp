#include "cli/benchmark/key_numbers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace weir::benchmark {
namespace {

// (e^x - 1) / x and log(1 + x) / x, also for x = 0: so an exponent of exactly 1 is no special case.
double expm1_over(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }
double log1p_over(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }

}  // namespace

client::Result<KeyDistribution> key_distribution_named(const std::string& text) {
  using Shape = KeyDistribution::Shape;
  if (text == "uniform") return KeyDistribution{};
  if (text == "sequential") return KeyDistribution{Shape::sequential};
  if (text == "zipf") return KeyDistribution{Shape::zipf};
  constexpr std::string_view with_exponent = "zipf:";
  KeyDistribution zipf{Shape::zipf};
  if (text.starts_with(with_exponent)) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + with_exponent.size(), end, zipf.exponent);
    if (error == std::errc{} && stop == end && zipf.exponent > 0 && zipf.exponent <= 10) return zipf;
  }
  return client::fail(
      client::ErrorKind::usage,
      "option --keys-distribution wants uniform, sequential, zipf or zipf:S with S above 0 and at "
      "most 10, not '" +
          text + "'");
}

KeyNumbers::KeyNumbers(KeyDistribution distribution, std::uint64_t keyspace, std::uint64_t seed,
                       std::uint64_t index, std::uint64_t sources)
    : distribution_(distribution),
      keyspace_(keyspace),
      random_(static_cast<std::minstd_rand::result_type>(seed)),
      at_(index % keyspace),
      step_(sources % keyspace) {
  if (distribution_.shape != KeyDistribution::Shape::zipf) return;
  first_area_ = area(1.5) - 1;
  last_area_ = area(static_cast<double>(keyspace_) + 0.5);
  squeeze_ = 2 - rank_at(area(2.5) - std::pow(2, -distribution_.exponent));
}

std::uint64_t KeyNumbers::next() {
  switch (distribution_.shape) {
    case KeyDistribution::Shape::uniform:
      break;
    case KeyDistribution::Shape::zipf:
      return zipf();
    case KeyDistribution::Shape::sequential: {
      const auto number = at_;
      at_ = at_ >= keyspace_ - step_ ? at_ - (keyspace_ - step_) : at_ + step_;
      return number;
    }
  }
  return draw() % keyspace_;
}

std::uint64_t KeyNumbers::draw() {
  const std::uint64_t high = random_();
  return high << 31 | random_();
}

// The area below x^-exponent from 1 to `rank`, and its inverse.
double KeyNumbers::area(double rank) const {
  const double log_rank = std::log(rank);
  return expm1_over((1 - distribution_.exponent) * log_rank) * log_rank;
}

double KeyNumbers::rank_at(double area) const {
  const double scaled = std::max(area * (1 - distribution_.exponent), -1 + 1e-15);
  return std::exp(log1p_over(scaled) * area);
}

// Rejection-inversion (Hoermann and Derflinger 1996): constant time and memory for any keyspace. It
// draws a point below the smooth curve. The bar of its rank covers nearly all of that area; a point
// outside the bar is drawn again.
std::uint64_t KeyNumbers::zipf() {
  for (;;) {
    const double part = static_cast<double>(draw() >> 9) * 0x1p-53;
    const double drawn = last_area_ + part * (first_area_ - last_area_);
    const double rank = rank_at(drawn);
    const double whole = std::clamp(std::round(rank), 1.0, static_cast<double>(keyspace_));
    if (whole - rank > squeeze_ && drawn < area(whole + 0.5) - std::pow(whole, -distribution_.exponent))
      continue;
    return std::min(static_cast<std::uint64_t>(whole), keyspace_) - 1;
  }
}

}  // namespace weir::benchmark

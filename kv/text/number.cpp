#include "kv/text/number.hpp"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace weir::kv {

std::optional<std::int64_t> parse_int(std::string_view text) {
  if (text.empty() || text.size() > 20) return std::nullopt;
  const char first = text[0];
  if (first == '0') {
    if (text.size() == 1) return 0;
    return std::nullopt;
  }
  const bool negative = first == '-';
  const char* p = text.data() + (negative ? 1 : 0);
  const char* end = text.data() + text.size();
  if (p == end || *p < '1' || *p > '9') return std::nullopt;
  std::uint64_t value = 0;
  for (; p != end; ++p) {
    const unsigned digit = static_cast<unsigned char>(*p) - unsigned{'0'};
    if (digit > 9) return std::nullopt;
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, std::uint64_t{digit}, &value)) return std::nullopt;
  }
  constexpr std::uint64_t most = std::uint64_t{1} << 63;
  if (negative) {
    if (value > most) return std::nullopt;
    return static_cast<std::int64_t>(~value + 1);
  }
  if (value >= most) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

namespace {
// strtod and strtold need a terminated string; nobody sends a longer number than this.
constexpr std::size_t longest_float_text = 5 * 1024;

template <class Float, Float (*convert)(const char*, char**)>
std::optional<Float> parse_float(std::string_view text) {
  if (text.empty() || text.size() >= longest_float_text ||
      std::isspace(static_cast<unsigned char>(text[0])) != 0) {
    return std::nullopt;
  }
  std::array<char, 64> small;
  std::string large;
  const char* begin = small.data();
  if (text.size() < small.size()) {
    std::memcpy(small.data(), text.data(), text.size());
    small[text.size()] = 0;
  } else {
    large.assign(text);
    begin = large.c_str();
  }
  char* end = nullptr;
  errno = 0;
  const Float value = convert(begin, &end);
  if (end != begin + text.size() || std::isnan(value)) return std::nullopt;
  if (errno == ERANGE && (std::abs(value) == std::numeric_limits<Float>::infinity() || value == 0)) {
    return std::nullopt;
  }
  return value;
}
}  // namespace

std::optional<double> parse_double(std::string_view text) { return parse_float<double, std::strtod>(text); }
std::optional<double> parse_bound(std::string_view text) {
  if (const auto strict = parse_double(text)) return strict;
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (*end != '\0' || std::isnan(value)) return std::nullopt;
  return value;
}
std::optional<long double> parse_long_double(std::string_view text) {
  return parse_float<long double, std::strtold>(text);
}

std::optional<std::int64_t> parse_memory(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && (std::isdigit(static_cast<unsigned char>(text[digits])) != 0)) ++digits;
  std::string unit;
  for (char c : text.substr(digits)) unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::int64_t scale = 0;
  if (unit.empty() || unit == "b") scale = 1;
  if (unit == "k") scale = 1000;
  if (unit == "kb") scale = 1024;
  if (unit == "m") scale = 1000 * 1000;
  if (unit == "mb") scale = 1024 * 1024;
  if (unit == "g") scale = 1000LL * 1000 * 1000;
  if (unit == "gb") scale = 1024LL * 1024 * 1024;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (scale == 0 || digits == 0 || error != std::errc{}) return std::nullopt;
  if (__builtin_mul_overflow(value, scale, &value)) return std::nullopt;
  return value;
}

std::string_view format_int(std::int64_t value, IntText& buffer) {
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), static_cast<std::size_t>(end - buffer.data())};
}

std::string format_double(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (std::isnan(value)) return "nan";
  constexpr double exact = 4503599627370496.0;  // 2^52: below it every integer is exact
  if (value == 0) return std::signbit(value) ? "-0" : "0";
  if (value > -exact && value < exact && value == std::trunc(value)) {
    IntText buffer;
    return std::string(format_int(static_cast<std::int64_t>(value), buffer));
  }
  std::array<char, 64> out;
  const int n = std::snprintf(out.data(), out.size(), "%.17g", value);
  return {out.data(), static_cast<std::size_t>(n)};
}

std::string format_long_double_human(long double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string out(5 * 1024, 0);
  const int n = std::snprintf(out.data(), out.size(), "%.17Lf", value);
  out.resize(static_cast<std::size_t>(n));
  if (out.find('.') != std::string::npos) {
    while (out.back() == '0') out.pop_back();
    if (out.back() == '.') out.pop_back();
  }
  if (out == "-0") out = "0";
  return out;
}

}  // namespace weir::kv

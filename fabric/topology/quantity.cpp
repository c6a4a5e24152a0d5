#include "fabric/topology/quantity.hpp"

#include <charconv>
#include <cmath>

namespace weir::fabric {
namespace {

struct Suffix {
  Unit unit;
  std::string_view text;
  double factor;
};
constexpr double kibi = 1024, kilo = 1000;
constexpr Suffix suffixes[] = {
    {Unit::bits_per_second, "M", kilo* kilo},
    {Unit::bits_per_second, "G", kilo* kilo* kilo},
    {Unit::bits_per_second, "T", kilo* kilo* kilo* kilo},
    {Unit::bits_per_second, "Mb/s", kilo* kilo},
    {Unit::bits_per_second, "Gb/s", kilo* kilo* kilo},
    {Unit::bits_per_second, "Tb/s", kilo* kilo* kilo* kilo},
    {Unit::bytes, "", 1},
    {Unit::bytes, "B", 1},
    {Unit::bytes, "KB", kilo},
    {Unit::bytes, "MB", kilo* kilo},
    {Unit::bytes, "GB", kilo* kilo* kilo},
    {Unit::bytes, "KiB", kibi},
    {Unit::bytes, "MiB", kibi* kibi},
    {Unit::bytes, "GiB", kibi* kibi* kibi},
    {Unit::meters, "m", 1},
    {Unit::meters, "km", kilo},
    {Unit::nanoseconds, "ns", 1},
    {Unit::nanoseconds, "us", kilo},
    {Unit::nanoseconds, "ms", kilo* kilo},
    {Unit::nanoseconds, "s", kilo* kilo* kilo},
    {Unit::fraction, "", 1},
    {Unit::fraction, "%", 0.01},
};

std::optional<double> with_suffix(double number, std::string_view text, Unit unit) {
  for (const auto& suffix : suffixes)
    if (suffix.unit == unit && suffix.text == text) return number * suffix.factor;
  return std::nullopt;
}

}  // namespace

std::optional<double> read_quantity(std::string_view text, Unit unit) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (unit == Unit::timeout) {
    if (!text.empty()) return with_suffix(number, text, Unit::nanoseconds);
    if (number < 1 || number > largest_timeout_code || number != std::floor(number)) return std::nullopt;
    return timeout_ns(static_cast<unsigned>(number));
  }
  return with_suffix(number, text, unit);
}

std::string_view example(Unit unit) {
  switch (unit) {
    case Unit::bits_per_second:
      return "a speed such as \"100G\"";
    case Unit::bytes:
      return "a size such as \"16MiB\" or 4096";
    case Unit::meters:
      return "a length such as \"5m\"";
    case Unit::nanoseconds:
      return "a time such as \"500ns\" or \"1.5us\"";
    case Unit::timeout:
      return "a time such as \"67ms\", or InfiniBand's code from 1 to 31, such as 14";
    case Unit::fraction:
      return "a share such as \"20%\" or 0.2";
  }
  return "a number";
}

}  // namespace weir::fabric

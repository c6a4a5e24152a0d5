#include "rpc/codec/schema.hpp"

namespace weir::rpc {

std::string unit_name(std::intmax_t numerator, std::intmax_t denominator) {
  struct Unit {
    std::intmax_t numerator, denominator;
    const char* name;
  };
  constexpr Unit units[] = {{1, 1'000'000'000, "ns"}, {1, 1'000'000, "us"}, {1, 1000, "ms"}, {1, 1, "s"},
                            {60, 1, "min"},           {3600, 1, "h"},       {86400, 1, "d"}};
  for (const Unit& unit : units)
    if (unit.numerator == numerator && unit.denominator == denominator) return unit.name;
  return std::to_string(numerator) + "/" + std::to_string(denominator) + "s";
}

std::string as_a_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain)
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

}  // namespace weir::rpc

#include "cli/weir/launch/device_names.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace weir::command {
namespace {

constexpr unsigned most = 16;
constexpr std::size_t longest = 60;  // ibv_device.name has 64 bytes, and the number may grow

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::expected<std::string, std::string> device_names(const std::string& name, const std::string& count) {
  unsigned wanted = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), wanted);
  if (error != std::errc{} || end != count.data() + count.size() || wanted == 0 || wanted > most)
    return std::unexpected("--devices wants a number from 1 to " + std::to_string(most) + ", not " + count);
  const bool plain = std::ranges::all_of(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; });
  if (name.empty() || name.size() > longest || !plain)
    return std::unexpected("--name wants letters, digits, _ and -, at most " + std::to_string(longest) +
                           ", not " + name);
  if (wanted == 1) return name;
  const auto number_at = std::find_if_not(name.rbegin(), name.rend(), digit).base();
  const std::string stem(name.begin(), number_at);
  unsigned first = 0;
  const std::string number(number_at, name.end());
  if (!number.empty() &&
      std::from_chars(number.data(), number.data() + number.size(), first).ec != std::errc{})
    return std::unexpected("--name ends with too large a number: " + name);
  std::string names;
  for (unsigned i = 0; i < wanted; ++i) names += (i != 0 ? "," : "") + stem + std::to_string(first + i);
  return names;
}

}  // namespace weir::command

#include "fabric/topology/platform_json.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

namespace weir::fabric {
namespace {

constexpr std::uint32_t most_lanes = 64, most_gbps = 10'000, last_port = 65'535;

// Takes a number from 1 to `most` off the front of `text`; nullopt: there is none.
std::optional<std::uint32_t> take_number(std::string_view& text, std::uint32_t most) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number == 0 || number > most) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view words) {
  if (!text.starts_with(words)) return false;
  text.remove_prefix(words.size());
  return true;
}

// "2x400G[200G,100G]" means two ports of at most 400 Gb/s.
std::optional<Breakout> read_mode(std::string_view text) {
  if (text.find('+') != text.npos) return std::nullopt;
  const auto parts = take_number(text, most_lanes);
  if (!parts || !take(text, "x")) return std::nullopt;
  const auto gbps = take_number(text, most_gbps);
  if (!gbps || !take(text, "G")) return std::nullopt;
  return Breakout{*parts, std::uint64_t{*gbps} * 1'000'000'000};
}

std::optional<PortRange> read_port(std::string_view name, const nlohmann::json& about) {
  if (!take(name, "Ethernet") || !about.is_object()) return std::nullopt;
  const auto lanes = about.find("lanes"), modes = about.find("breakout_modes");
  if (lanes == about.end() || !lanes->is_string() || modes == about.end() || !modes->is_object())
    return std::nullopt;
  PortRange port;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), port.first);
  if (error != std::errc{} || end != name.data() + name.size() || port.first > last_port) return std::nullopt;
  const auto& list = lanes->get_ref<const std::string&>();
  port.lanes = static_cast<std::uint32_t>(std::ranges::count(list, ',')) + 1;
  port.step = port.lanes;
  for (const auto& [mode, names] : modes->items())
    if (const auto read = read_mode(mode); read && port.lanes % read->parts == 0) port.modes.push_back(*read);
  std::ranges::sort(port.modes, {}, &Breakout::parts);
  if (port.modes.empty() || port.lanes > most_lanes) return std::nullopt;
  return port;
}

}  // namespace

std::vector<PortRange> read_platform_json(std::string_view text) {
  std::vector<PortRange> out;
  const auto file = nlohmann::json::parse(text, nullptr, false);
  if (!file.is_object()) return out;
  const auto interfaces = file.find("interfaces");
  if (interfaces == file.end() || !interfaces->is_object()) return out;
  for (const auto& [name, about] : interfaces->items())
    if (auto port = read_port(name, about)) out.push_back(std::move(*port));
  std::ranges::sort(out, {}, &PortRange::first);
  return out;
}

}  // namespace weir::fabric

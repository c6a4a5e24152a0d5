#include "fabric/topology/cabling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace weir::fabric {
namespace {

// TOML's basic strings escape as JSON does.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string port_of(const Cabling::End& end, bool is_host) {
  constexpr std::string_view sonic = "Ethernet";
  const std::string_view name = end.port;
  const bool named = !is_host && name.starts_with(sonic) && name.size() > sonic.size() &&
                     name.find_first_not_of("0123456789", sonic.size()) == name.npos;
  return named ? end.node + ":" + end.port : end.node;
}

std::string speed_text(std::uint64_t mbps) {
  return mbps % 1000 == 0 ? fmt::format("{}G", mbps / 1000) : fmt::format("{}M", mbps);
}

}  // namespace

void Cabling::add(Cable cable) {
  devices_[cable.a.node];
  devices_[cable.b.node];
  const auto complete = [&cable](Cable& known) {
    if (!known.speed_mbps) known.speed_mbps = cable.speed_mbps;
    if (!known.length_m) known.length_m = cable.length_m;
  };
  // The other end's report of the same cable: its own name for its port replaces the alias.
  const auto same = [&](const End& end, const End& far) -> Cable* {
    const auto found = end.port.empty() ? cable_at_.end() : cable_at_.find(end);
    if (found == cable_at_.end()) return nullptr;
    auto& known = cables_[found->second];
    return (known.a == end ? known.b : known.a).node == far.node ? &known : nullptr;
  };
  if (auto* known = same(cable.a, cable.b)) return complete(*known);
  if (auto* known = same(cable.b, cable.a)) {
    auto& far = known->a == cable.b ? known->b : known->a;
    far = cable.a;
    cable_at_[cable.a] = static_cast<std::size_t>(known - cables_.data());
    return complete(*known);
  }
  for (const auto* end : {&cable.a, &cable.b})
    if (!end->port.empty()) cable_at_.try_emplace(*end, cables_.size());
  cables_.push_back(std::move(cable));
}

void Cabling::guess_hosts() {
  std::map<std::string, std::set<std::string>> neighbors;
  for (const auto& cable : cables_) {
    neighbors[cable.a.node].insert(cable.b.node);
    neighbors[cable.b.node].insert(cable.a.node);
  }
  for (auto& [name, about] : devices_)
    if (!about.is_host) about.is_host = about.model.empty() && neighbors[name].size() == 1;
}

std::string network_file(const Cabling& cabling, const CablingDefaults& defaults) {
  std::string switches, hosts, links;
  std::size_t speeds = 0, lengths = 0, models = 0;
  const auto is_host = [&cabling](const std::string& name) {
    return cabling.devices().at(name).is_host.value_or(false);
  };
  for (const auto& [name, about] : cabling.devices())
    if (is_host(name)) {
      hosts += fmt::format("[[host]]\nname = {}\n\n", quoted(name));
    } else {
      models += about.model.empty();
      switches += fmt::format("[[switch]]\nname = {}\nmodel = {}\n\n", quoted(name),
                              quoted(about.model.empty() ? defaults.model : about.model));
    }
  for (const auto& cable : cabling.cables()) {
    speeds += !cable.speed_mbps;
    lengths += !cable.length_m;
    const auto speed = cable.speed_mbps ? speed_text(*cable.speed_mbps) : defaults.speed;
    const auto length = cable.length_m ? fmt::format("{:g}m", *cable.length_m) : defaults.cable;
    links += fmt::format("[[link]]\nbetween = [{}, {}]\nspeed = {}\ncable = {}\n\n",
                         quoted(port_of(cable.a, is_host(cable.a.node))),
                         quoted(port_of(cable.b, is_host(cable.b.node))), quoted(speed), quoted(length));
  }
  std::string head =
      fmt::format("# Devices: {}. Cables: {}.\n", cabling.devices().size(), cabling.cables().size());
  const auto assumed = [&head](std::string_view what, std::size_t count, const std::string& value) {
    if (count != 0) head += fmt::format("# {}: {}. {} is assumed.\n", what, count, quoted(value));
  };
  assumed("Switches of an unknown model", models, defaults.model);
  assumed("Cables of an unknown speed", speeds, defaults.speed);
  assumed("Cables of an unknown length", lengths, defaults.cable);
  if (!links.empty()) links.pop_back();
  return head + "name = \"imported\"\n\n" + switches + hosts + links;
}

}  // namespace weir::fabric

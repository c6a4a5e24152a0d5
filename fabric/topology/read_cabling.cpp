#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fabric/topology/cabling.hpp"
#include "fabric/topology/switch_model.hpp"

namespace weir::fabric {
namespace {

using nlohmann::json;
const json nothing;

const json& member(const json& value, std::string_view key) {
  if (!value.is_object()) return nothing;
  const auto found = value.find(key);
  return found == value.end() ? nothing : *found;
}

std::string string_at(const json& value, std::string_view key) {
  const auto& found = member(value, key);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::optional<double> number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

void read_containerlab(const json& file, Cabling& cabling) {
  const auto end = [](const json& of) {
    return Cabling::End{string_at(of, "node"), string_at(of, "interface")};
  };
  for (const auto& link : member(file, "links")) {
    const auto& ends = member(link, "endpoints").is_object() ? member(link, "endpoints") : link;
    Cabling::Cable cable{end(member(ends, "a")), end(member(ends, "z")), {}, {}};
    if (!cable.a.node.empty() && !cable.b.node.empty()) cabling.add(std::move(cable));
  }
  for (const auto& [name, about] : member(file, "nodes").items())
    if (cabling.devices().contains(name)) cabling.device(name).is_host = string_at(about, "kind") == "linux";
}

std::optional<double> metres(const json& cable) {
  const auto length = number_of(member(cable, "length"));
  const auto& unit = member(cable, "length_unit");
  const auto name = unit.is_string() ? unit.get<std::string>() : string_at(unit, "value");
  constexpr std::pair<std::string_view, double> units[] = {{"km", 1000},     {"m", 1},       {"cm", 0.01},
                                                           {"mi", 1609.344}, {"ft", 0.3048}, {"in", 0.0254}};
  for (const auto& [known, factor] : units)
    if (length && name == known) return *length * factor;
  return std::nullopt;
}

// Cables with several terminations at an end (breakouts) join them in order.
void read_netbox(const json& cables, Cabling& cabling) {
  const auto end = [](const json& termination) {
    const auto& object = member(termination, "object");
    return Cabling::End{string_at(member(object, "device"), "name"), string_at(object, "name")};
  };
  for (const auto& cable : cables) {
    const auto &left = member(cable, "a_terminations"), &right = member(cable, "b_terminations");
    if (!left.is_array() || !right.is_array() || left.empty() || right.empty()) continue;
    for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
      const auto &a = left[std::min(i, left.size() - 1)], &b = right[std::min(i, right.size() - 1)];
      if (string_at(a, "object_type") != "dcim.interface" || string_at(b, "object_type") != "dcim.interface")
        continue;
      Cabling::Cable joined{end(a), end(b), {}, metres(cable)};
      if (!joined.a.node.empty() && !joined.b.node.empty()) cabling.add(std::move(joined));
    }
  }
}

// json0 wraps every value in a list and a "value"; json wraps a name around an object instead.
const json& unwrapped(const json& value) {
  return value.is_array() && !value.empty() ? value.front() : value;
}
std::string lldp_text(const json& value) {
  const auto& inner = unwrapped(value);
  return inner.is_string() ? inner.get<std::string>() : string_at(inner, "value");
}

bool is_bridge(const json& capabilities) {
  const auto one = [](const json& capability) {
    const auto type = string_at(capability, "type");
    return (type == "Bridge" || type == "Router") && member(capability, "enabled") == json(true);
  };
  if (!capabilities.is_array()) return one(capabilities);
  return std::ranges::any_of(capabilities, one);
}

void read_lldp_neighbor(const std::string& device, const std::string& local, const json& about,
                        Cabling& cabling) {
  const json* chassis = &unwrapped(member(about, "chassis"));
  auto name = lldp_text(member(*chassis, "name"));
  if (name.empty() && chassis->is_object() && chassis->size() == 1) {
    name = chassis->begin().key();
    chassis = &chassis->begin().value();
  }
  const auto& port = unwrapped(member(about, "port"));
  // SONiC sends its alias for the port as the port's identifier, and its name as the description.
  const auto description = lldp_text(member(port, "descr"));
  const auto remote = description.starts_with("Ethernet") ? description : lldp_text(member(port, "id"));
  if (name.empty() || local.empty() || name == device) return;
  cabling.add({{device, local}, {name, remote}, {}, {}});
  if (const auto& capabilities = member(*chassis, "capability"); !capabilities.is_null())
    if (auto& is_host = cabling.device(name).is_host; !is_host) is_host = !is_bridge(capabilities);
}

void read_lldp(const json& lldp, const std::string& device, Cabling& cabling) {
  const auto& interfaces = member(unwrapped(lldp), "interface");
  const auto one = [&](const json& interface) {
    if (const auto name = string_at(interface, "name"); !name.empty())
      return read_lldp_neighbor(device, name, interface, cabling);
    if (interface.is_object())
      for (const auto& [name, about] : interface.items()) read_lldp_neighbor(device, name, about, cabling);
  };
  if (interfaces.is_array())
    for (const auto& interface : interfaces) one(interface);
  else
    one(interfaces);
  cabling.device(device).is_host = false;
}

// The built-in model made from the sizes of this SKU.
std::string model_of(const std::string& sku) {
  for (const auto& model : built_in_models())
    if (!sku.empty() && model.source.ends_with("SONiC's " + sku)) return model.name;
  return {};
}

void read_config_db(const json& file, const std::string& fallback, Cabling& cabling) {
  const auto& self = member(member(file, "DEVICE_METADATA"), "localhost");
  const auto hostname = string_at(self, "hostname");
  const auto device = hostname.empty() ? fallback : hostname;
  const auto& ports = member(file, "PORT");
  for (const auto& [local, neighbor] : member(file, "DEVICE_NEIGHBOR").items()) {
    Cabling::Cable cable{{device, local}, {string_at(neighbor, "name"), string_at(neighbor, "port")}, {}, {}};
    if (cable.b.node.empty() || cable.b.node == device) continue;
    if (const auto speed = number_of(member(member(ports, local), "speed"));
        speed && *speed >= 1 && *speed < 1e8)
      cable.speed_mbps = static_cast<std::uint64_t>(*speed);
    for (const auto& [name, lengths] : member(file, "CABLE_LENGTH").items())
      cable.length_m = number_of(member(lengths, local));
    cabling.add(std::move(cable));
  }
  auto& own = cabling.device(device);
  own.is_host = false;
  own.model = model_of(string_at(self, "hwsku"));
  for (const auto& [name, about] : member(file, "DEVICE_NEIGHBOR_METADATA").items())
    if (cabling.devices().contains(name))
      if (auto& is_host = cabling.device(name).is_host; !is_host)
        is_host = string_at(about, "type").starts_with("Server");
}

}  // namespace

void read_cabling(std::string_view text, const std::string& path, Cabling& cabling, Complaints& complaints) {
  const Place place{std::make_shared<const std::string>(path), 0, 0};
  const auto file = json::parse(text, nullptr, false);
  const auto before = cabling.cables().size();
  const auto device = std::filesystem::path(path).stem().string();
  const auto& cables = file.is_array() ? file : member(file, "results");
  if (file.is_discarded())
    return complaints.add(place, "not JSON", "containerlab writes topology-data.json beside its YAML file");
  if (!member(file, "lldp").is_null())
    read_lldp(member(file, "lldp"), device, cabling);
  else if (!member(file, "DEVICE_NEIGHBOR").is_null() || !member(file, "DEVICE_METADATA").is_null())
    read_config_db(file, device, cabling);
  else if (!member(file, "links").is_null())
    read_containerlab(file, cabling);
  else if (cables.is_array())
    read_netbox(cables, cabling);
  else
    return complaints.add(place, "not a file that --import knows", "weir-plan(1) lists them");
  if (cabling.cables().empty() && before == 0)
    complaints.add(place, "no cable between two named devices", "see weir-plan(1), --import");
}

}  // namespace weir::fabric

// From the tables of a file to a Network: the switches' behaviour, and the public entry points.
#include "fabric/topology/read_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>

#include "fabric/topology/check_network.hpp"
#include "fabric/topology/network_reader.hpp"

namespace weir::fabric {
namespace {

constexpr Range mtu_range{64, 65535};
constexpr Range watchdog_detection_range{100, 5000};  // these three as in SONiC's YANG model
constexpr Range watchdog_restoration_range{100, 60000};
constexpr std::uint32_t longest_poll_ms = 1000;
constexpr Range watchdog_poll_range{100, longest_poll_ms};

}  // namespace

void NetworkReader::add_model(SwitchModel model) {
  if (!model.port_config.empty()) {
    if (const auto text = open_(model.port_config))
      model.ports = read_port_config(*text, model.place, complaints_);
    else
      complaints_.add(model.place, fmt::format("cannot read port_config '{}'", model.port_config),
                      "give a path relative to the network file");
  }
  const auto same = std::ranges::find(network_.models, model.name, &SwitchModel::name);
  if (same == network_.models.end())
    network_.models.push_back(std::move(model));
  else if (std::ranges::find(built_in_models(), model.name, &SwitchModel::name) != built_in_models().end() &&
           same->place.file != model.place.file)
    *same = std::move(model);  // a file may override a model that comes with Weir
  else
    complaints_.add(model.place, fmt::format("switch model '{}' is there twice", model.name),
                    "rename one of them");
}

void NetworkReader::read_models() {
  network_.models = built_in_models();
  for (const auto& [name, place] : root_.strings("models")) {
    const auto text = open_(name);
    if (!text) {
      complaints_.add(place, fmt::format("cannot read the file of switch models '{}'", name),
                      "give a path relative to this file");
      continue;
    }
    const auto document = Document::parse(*text, name, complaints_);
    if (!document) continue;
    auto root = document->root(complaints_);
    for (auto& table : root.tables("switch_model")) add_model(read_switch_model(table));
    root.finish();
  }
  for (auto& table : root_.tables("switch_model")) add_model(read_switch_model(table));
}

void NetworkReader::read_classes() {
  auto& classes = network_.classes;
  if (auto table = root_.table("lossless")) {
    if (table->has("priorities")) {
      std::set<std::uint8_t> unique;
      for (const auto& [priority, place] : table->integers("priorities", {0, priorities - 1}))
        if (!unique.insert(static_cast<std::uint8_t>(priority)).second)
          complaints_.add(place, fmt::format("priority {} is there twice", priority), "remove one");
      if (unique.empty())
        table->complain("priorities", "no lossless priority", "give at least one, such as [3]");
      classes.lossless.assign(unique.begin(), unique.end());
    }
    const auto bytes = [&](std::string_view key, std::uint32_t& value) {
      if (const auto given = table->quantity(key, Unit::bytes, mtu_range))
        value = static_cast<std::uint32_t>(*given);
    };
    bytes("port_mtu", classes.mtu_bytes);
    bytes("lossless_mtu", classes.lossless_mtu_bytes);
    bytes("smallest_packet", classes.smallest_packet_bytes);
    classes.small_packet_percentage = table->number("small_packet_percentage", {0, 100}).value_or(100);
    if (classes.lossless_mtu_bytes > classes.mtu_bytes)
      table->complain("lossless_mtu", "lossless_mtu is larger than port_mtu", "give at most port_mtu");
    table->finish();
  }
  if (auto table = root_.table("scheduling")) {
    for (const auto& [priority, place] : table->integers("strict", {0, priorities - 1}))
      classes.strict.push_back(static_cast<std::uint8_t>(priority));
    table->finish();
  }
  read_dscps();
}

void NetworkReader::read_dscps() {
  auto& map = network_.classes.dscp_to_priority;
  map = sonic_dscp_to_priority;
  auto table = root_.table("dscp");
  if (!table) return;
  for (const auto& [key, place] : table->other_keys()) {
    unsigned dscp = dscps;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), dscp);
    if (error != std::errc{} || end != key.data() + key.size() || dscp >= dscps) {
      complaints_.add(place, fmt::format("'{}' is no DSCP", key),
                      "write lines such as 26 = 3, the DSCP 0 to 63");
      continue;
    }
    if (const auto priority = table->integer(key, {0, priorities - 1}))
      map[dscp] = static_cast<std::uint8_t>(*priority);
  }
}

void NetworkReader::read_hints() {
  auto table = root_.table("traffic");
  if (!table) return;
  auto& hints = network_.hints;
  hints.incast = count(*table, "incast", hints.incast);
  hints.congested_queues = count(*table, "congested_queues", hints.congested_queues);
  hints.spread = count(*table, "spread", hints.spread);
  hints.rtt_ns = table->quantity("rtt", Unit::nanoseconds, {1, 1e9});
  table->finish();
}

void NetworkReader::read_overrides() {
  auto& plan = network_.overrides;
  auto table = root_.table("plan");
  if (!table) return;
  plan.place = table->place();
  if (const auto th = table->integer("dynamic_th", {-7, 3})) plan.dynamic_th = static_cast<int>(*th);
  plan.kmin_bytes = table->quantity("kmin", Unit::bytes, {1, 1e12});
  plan.kmax_bytes = table->quantity("kmax", Unit::bytes, {1, 1e12});
  plan.pmax = table->quantity("pmax", Unit::fraction, {0.01, 1});
  plan.xon_offset_bytes = table->quantity("xon_offset", Unit::bytes, {0, 1e9});
  plan.xoff_bytes = table->quantity("xoff", Unit::bytes, {0, 1e9});
  plan.headroom_pool_bytes = table->quantity("headroom_pool", Unit::bytes, {0, 1e12});
  plan.pfc_stat_history = table->word("pfc_stat_history", {"enable", "disable"}).value_or("");
  plan.sonic_release =
      table
          ->word("sonic_release", {"tables", "202012", "202106", "202111", "202205", "202211", "202305",
                                   "202311", "202405", "202411", "202505", "202511", "202605"})
          .value_or(plan.sonic_release);
  plan.sonic_headroom_only = table->word("headroom", {"sonic", "larger"}) == "sonic";
  plan.free_share = table->quantity("free_share", Unit::fraction, {0, 0.99}).value_or(plan.free_share);
  const auto time = [&](std::string_view key, Range range, std::optional<std::uint32_t>& value) {
    const auto ns = table->quantity(key, Unit::nanoseconds, {range.least * 1e6, range.most * 1e6});
    if (ns) value = static_cast<std::uint32_t>(*ns / 1e6);
  };
  time("watchdog_detection", watchdog_detection_range, plan.watchdog_detection_ms);
  time("watchdog_restoration", watchdog_restoration_range, plan.watchdog_restoration_ms);
  time("watchdog_poll", watchdog_poll_range, plan.watchdog_poll_ms);
  plan.watchdog_action =
      table->word("watchdog_action", {"drop", "forward", "alert"}).value_or(plan.watchdog_action);
  if (plan.watchdog_detection_ms < plan.watchdog_poll_ms ||
      plan.watchdog_restoration_ms < plan.watchdog_poll_ms)
    table->complain("watchdog_poll", "the watchdog polls less often than it is to detect or restore",
                    "make watchdog_poll the shortest of the three times");
  if (plan.kmin_bytes && plan.kmax_bytes && *plan.kmin_bytes > *plan.kmax_bytes)
    table->complain("kmin", "kmin is above kmax", "marking begins at kmin: make it the smaller one");
  table->finish();
}

std::optional<Network> read_network(Table& root, const FileOpener& open, Complaints& complaints,
                                    const ReadLimits& limits) {
  auto network = NetworkReader(root, open, complaints, limits).read();
  if (complaints.none()) check_network(network, root.place(), complaints);
  if (!complaints.none()) return std::nullopt;
  return network;
}

std::optional<Network> read_network(std::string_view text, std::string file, const FileOpener& open,
                                    Complaints& complaints, const ReadLimits& limits) {
  const auto document = Document::parse(text, std::move(file), complaints);
  if (!document) return std::nullopt;
  auto root = document->root(complaints);
  if (root.has("workload")) {
    root.complain("workload", "this is a scenario: what happens in a network, not the network itself",
                  "run it with 'weir sim', or plan the file that its 'network' names");
    return std::nullopt;
  }
  auto network = read_network(root, open, complaints, limits);
  root.finish();
  if (!complaints.none()) return std::nullopt;
  return network;
}

std::optional<Network> load_network(const std::string& path, Complaints& complaints) {
  const auto text = read_text(path);
  if (!text) {
    complaints.add({std::make_shared<const std::string>(path), 0, 0},
                   std::string("cannot be read: ") + std::strerror(errno), "give the path of a network file");
    return std::nullopt;
  }
  const auto beside = std::filesystem::path(path).parent_path();
  return read_network(
      *text, path, [&](const std::string& name) { return read_text(beside / name); }, complaints);
}

}  // namespace weir::fabric

#include "fabric/topology/switch_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "fabric/topology/built_in_models.hpp"
#include "fabric/topology/platform_json.hpp"

namespace weir::fabric {
namespace {

constexpr Range capacity_range{1e9, 1e15};
constexpr Range buffer_range{1024, 1e12};
constexpr Range part_range{0, 1e12};
constexpr Range cell_range{1, 65536};
constexpr Range delay_range{0, 1e9};
constexpr Range forwarding_range{
    0, 10e6};  // with a cable of any length it fits into the simulator's 32 bits of 10 ps
constexpr Range over_subscription_range{1, 1000};
constexpr Range port_number_range{0, 65535};
constexpr Range port_count_range{1, 4096};
constexpr Range lane_range{1, 64};
constexpr Range port_speed_range{1e6, 10e12};
constexpr Range dynamic_th_range{-8, 7};  // of SONiC's YANG models

PortRange read_port_range(Table& table) {
  PortRange range;
  const auto whole = [&table](std::string_view key, Range allowed, std::uint32_t& value) {
    if (const auto given = table.integer(key, allowed)) value = static_cast<std::uint32_t>(*given);
  };
  whole("first", port_number_range, range.first);
  whole("count", port_count_range, range.count);
  whole("lanes", lane_range, range.lanes);
  range.step = range.lanes;
  whole("step", port_count_range, range.step);
  std::uint32_t split = 1;
  whole("split", lane_range, split);
  if (!table.has("speed")) table.missing("speed", "give the highest speed of a whole port, such as \"100G\"");
  const auto speed = [&table](std::string_view key, double otherwise) {
    return static_cast<std::uint64_t>(
        table.quantity(key, Unit::bits_per_second, port_speed_range).value_or(otherwise));
  };
  const auto all = speed("speed", 1e9);
  for (std::uint32_t parts = 1; parts <= split; parts *= 2) range.modes.push_back({parts, all / parts});
  range.modes.front().speed_bps = speed("unsplit", static_cast<double>(all));
  if (split > range.lanes)
    table.complain("split", "a port cannot be split into more ports than it has lanes",
                   "give at most 'lanes'");
  table.finish();
  return range;
}

// { speed = "100G", cables = ["5m", "40m"], xoff = [68580, 74422] }: the rows of one speed.
void read_headroom_rows(Table& table, std::vector<HeadroomRow>& out) {
  const auto speed = table.quantity("speed", Unit::bits_per_second, port_speed_range);
  const auto cables = table.strings("cables");
  const auto xoff = table.integers("xoff", part_range);
  if (!speed || cables.empty() || cables.size() != xoff.size())
    table.complain("cables", "rows of headroom need a speed, cables and an xoff for each cable",
                   "write { speed = \"100G\", cables = [\"5m\", \"40m\"], xoff = [68580, 74422] }");
  double shortest = 0;
  for (std::size_t i = 0; speed && i < std::min(cables.size(), xoff.size()); ++i) {
    const auto length = read_quantity(cables[i].value, Unit::meters);
    if (!length || *length <= shortest) {
      table.complain("cables",
                     fmt::format("'{}' is no length, or not longer than the one before", cables[i].value),
                     "write lengths in ascending order, such as [\"5m\", \"40m\"]");
      break;
    }
    shortest = *length;
    out.push_back({static_cast<std::uint64_t>(*speed), *length, static_cast<std::uint64_t>(xoff[i].value)});
  }
  table.finish();
}

SonicPools read_pools(Table& table) {
  SonicPools pools;
  const auto layout = table.word("layout", {"three", "two", "one"});
  if (layout == "two") pools.layout = PoolLayout::two;
  if (layout == "one") pools.layout = PoolLayout::one;
  const auto bytes = [&table](std::string_view key) -> std::optional<std::uint64_t> {
    const auto value = table.quantity(key, Unit::bytes, part_range);
    if (!value) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
  };
  pools.xoff_bytes = bytes("xoff");
  pools.egress_is_static = table.word("egress_mode", {"static", "dynamic"}) == "static";
  pools.lossless_static_th = bytes("lossless_static_th");
  pools.lossy_pool_bytes = bytes("lossy_pool");
  pools.lossy_bytes = bytes("lossy_size").value_or(0);
  const auto exponent = [&table](std::string_view key, int& value) {
    if (const auto given = table.integer(key, dynamic_th_range)) value = static_cast<int>(*given);
  };
  exponent("lossless_dynamic_th", pools.lossless_dynamic_th);
  exponent("lossy_dynamic_th", pools.lossy_dynamic_th);
  table.finish();
  return pools;
}

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

SwitchModel read_switch_model(Table& table) {
  SwitchModel model;
  model.place = table.place();
  model.name = table.string("name").value_or("");
  if (!table.has("name")) table.missing("name", "name the model, as switches refer to it");
  model.source = table.string("source").value_or("");
  if (const auto capacity = table.quantity("capacity", Unit::bits_per_second, capacity_range))
    model.capacity_bps = static_cast<std::uint64_t>(*capacity);
  const auto buffer = table.quantity("buffer", Unit::bytes, buffer_range);
  if (!table.has("buffer")) table.missing("buffer", "give the whole packet buffer, such as \"32MiB\"");
  model.buffer_bytes = static_cast<std::uint64_t>(buffer.value_or(buffer_range.most));
  const auto cell = table.quantity("cell", Unit::bytes, cell_range);
  if (!table.has("cell"))
    table.missing("cell", "give the size of a buffer cell, such as 208; 1 where it has none");
  model.cell_bytes = static_cast<std::uint32_t>(cell.value_or(1));

  const auto bytes = [&table](std::string_view key) { return table.quantity(key, Unit::bytes, part_range); };
  const auto delay = [&table](std::string_view key) {
    return table.quantity(key, Unit::nanoseconds, delay_range).value_or(0);
  };
  model.reserved_bytes = static_cast<std::uint64_t>(bytes("reserved").value_or(0));
  model.reserved_per_port_bytes = static_cast<std::uint64_t>(bytes("reserved_per_port").value_or(0));
  if (model.reserved_bytes >= model.buffer_bytes)
    table.complain("reserved", "more is reserved than the buffer holds", "reserve less than 'buffer'");
  const auto pool = table.word("headroom_pool", {"private", "shared"});
  model.headroom_pool = pool == "shared" ? HeadroomPool::shared : HeadroomPool::private_;
  if (const auto ratio = table.number("over_subscription", over_subscription_range)) {
    model.over_subscription = *ratio;
    if (model.headroom_pool != HeadroomPool::shared)
      table.complain("over_subscription", "over_subscription means nothing with private headroom",
                     "add headroom_pool = \"shared\" or remove it");
  }
  model.pool_includes_headroom = table.boolean("pool_includes_headroom").value_or(false);
  if (model.pool_includes_headroom && model.headroom_pool != HeadroomPool::shared)
    table.complain("pool_includes_headroom", "pool_includes_headroom means nothing with private headroom",
                   "add headroom_pool = \"shared\" or remove it");
  if (auto pools = table.table("pools")) model.pools = read_pools(*pools);
  if (model.pools.xoff_bytes && model.headroom_pool != HeadroomPool::shared)
    table.complain("pools", "pools.xoff means nothing with private headroom",
                   "add headroom_pool = \"shared\" or remove it");
  model.pfc_generation_ns = delay("pfc_generation");
  model.phy_ns = delay("phy");
  model.gearbox_ns = delay("gearbox");
  model.macsec_ns = delay("macsec");
  model.forwarding_ns = table.quantity("forwarding", Unit::nanoseconds, forwarding_range).value_or(1000);
  model.pipeline_bytes = bytes("pipeline").value_or(0);
  model.mac_phy_bytes = bytes("mac_phy").value_or(0);
  model.peer_response_bytes = bytes("peer_response");
  model.tile_bytes_per_gbps = table.number("tile_bytes_per_gbps", {0, 1e6}).value_or(0);
  for (auto& rows : table.tables("sonic_headroom")) read_headroom_rows(rows, model.headroom_table);
  std::ranges::stable_sort(model.headroom_table, {}, &HeadroomRow::speed_bps);
  model.headroom_looked_up = table.boolean("headroom_looked_up").value_or(false);
  if (model.headroom_looked_up && model.headroom_table.empty())
    table.complain("headroom_looked_up", "there is no table to look the headroom up in",
                   "add sonic_headroom, the rows of pg_profile_lookup.ini, or remove it");
  if (const auto egress = bytes("egress_pool")) model.egress_pool_bytes = static_cast<std::uint64_t>(*egress);
  model.port_config = table.string("port_config").value_or("");
  for (auto& range : table.tables("ports")) model.ports.push_back(read_port_range(range));
  table.finish();
  return model;
}

namespace {

std::vector<PortRange> read_port_config_ini(std::string_view text) {
  constexpr std::uint64_t slow_lane_bps = 25'000'000'000, fast_lane_bps = 2 * slow_lane_bps;
  constexpr std::uint32_t fast_lanes = 8;
  // The heading names the columns; SONiC's own files without a heading have these.
  std::vector<std::string> columns = {"name", "lanes", "alias", "index", "speed"};
  std::vector<PortRange> out;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> row;
    for (std::string word; words >> word;) row.push_back(word);
    if (row.empty()) continue;
    if (row.front().starts_with('#')) {
      if (row.front() == "#" && row.size() > 2 && row[1] == "name")
        columns.assign(row.begin() + 1, row.end());
      continue;
    }
    const auto cell = [&](std::string_view column) -> std::string_view {
      const auto at = static_cast<std::size_t>(std::ranges::find(columns, column) - columns.begin());
      return at < columns.size() && at < row.size() ? std::string_view(row[at]) : std::string_view();
    };
    constexpr std::string_view front_port = "Ethernet";
    const auto name = cell("name");
    const auto number = name.starts_with(front_port)
                            ? whole_number<std::uint32_t>(name.substr(front_port.size()))
                            : std::nullopt;
    if (!number) continue;  // Ethernet-Rec0 and the like are inside the switch
    PortRange port;
    port.first = *number;
    port.lanes = static_cast<std::uint32_t>(std::ranges::count(cell("lanes"), ',')) + 1;
    port.step = port.lanes;
    const auto mbps = whole_number<std::uint64_t>(cell("speed"));
    port.modes = {{1, mbps ? *mbps * 1'000'000
                           : port.lanes * (port.lanes >= fast_lanes ? fast_lane_bps : slow_lane_bps)}};
    out.push_back(port);
  }
  return out;
}

}  // namespace

std::vector<PortRange> read_port_config(std::string_view text, const Place& place, Complaints& complaints) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  const bool json = begin != text.npos && text[begin] == '{';
  auto out = json ? read_platform_json(text) : read_port_config_ini(text);
  if (out.empty())
    complaints.add(place, "no port in the file of 'port_config'",
                   "name SONiC's port_config.ini, with lines such as \"Ethernet0 0,1,2,3 etp1 1 100000\", or "
                   "platform.json, whose \"interfaces\" have \"lanes\" and \"breakout_modes\"");
  return out;
}

const std::vector<SwitchModel>& built_in_models() {
  static const std::vector<SwitchModel> models = [] {
    std::vector<SwitchModel> out;
    for (const auto& file : built_in_model_files) {
      Complaints complaints;
      const auto document = Document::parse(file.text, std::string(file.name), complaints);
      if (document) {
        auto root = document->root(complaints);
        for (auto& table : root.tables("switch_model")) out.push_back(read_switch_model(table));
      }
    }
    std::ranges::sort(out, {}, &SwitchModel::name);
    return out;
  }();
  return models;
}

}  // namespace weir::fabric

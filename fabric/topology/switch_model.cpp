#include "fabric/topology/switch_model.hpp"

#include <algorithm>

#include "fabric/topology/built_in_models.hpp"

namespace weir::fabric {
namespace {

constexpr Range capacity_range{1e9, 1e15};
constexpr Range buffer_range{1024, 1e12};
constexpr Range part_range{0, 1e12};
constexpr Range cell_range{1, 65536};
constexpr Range delay_range{0, 1e9};
constexpr Range forwarding_range{
    0, 10e6};  // with a cable of any length the simulator's 32 bits of 10 ps hold it
constexpr Range over_subscription_range{1, 1000};

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
  model.pfc_generation_ns = delay("pfc_generation");
  model.phy_ns = delay("phy");
  model.gearbox_ns = delay("gearbox");
  model.macsec_ns = delay("macsec");
  model.forwarding_ns = table.quantity("forwarding", Unit::nanoseconds, forwarding_range).value_or(1000);
  model.pipeline_bytes = bytes("pipeline").value_or(0);
  model.mac_phy_bytes = bytes("mac_phy").value_or(0);
  model.peer_response_bytes = bytes("peer_response");
  model.tile_bytes_per_gbps = table.number("tile_bytes_per_gbps", {0, 1e6}).value_or(0);
  if (const auto egress = bytes("egress_pool")) model.egress_pool_bytes = static_cast<std::uint64_t>(*egress);
  table.finish();
  return model;
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

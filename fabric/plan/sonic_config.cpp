#include "fabric/plan/sonic_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>

namespace weir::fabric {
namespace {

using SortedJson = nlohmann::json;  // sorted keys: the same plan gives the same bytes
// The names in SONiC's own templates, so that these entries replace them.
constexpr const char* map_name = "AZURE";
constexpr const char* lossy_scheduler = "scheduler.0";
constexpr const char* lossless_scheduler = "scheduler.1";
constexpr const char* strict_scheduler = "scheduler.strict";
constexpr int lossy_dynamic_th = 3;
constexpr int widest_dynamic_th = 7;      // where another limit should apply first
constexpr int lossy_port_minimum = 9216;  // of SONiC's egress_lossy_profile
constexpr std::size_t network_control =
    7;  // the class that SONiC keeps out of the lossy group, without a queue

std::string number(std::uint64_t value) { return std::to_string(value); }

class SonicConfig {
 public:
  SonicConfig(const Plan& plan, const SwitchPlan& kind, NodeId at)
      : network_(*plan.network), kind_(kind), at_(at) {
    for (const auto& port : kind.ports)
      for (const auto id : port.ports)
        if (network_[id].node == at) plan_of_.emplace_back(id, &port);
  }

  std::string text() {
    pools();
    profiles();
    maps();
    for (const auto& [id, port] : plan_of_) add_port(network_[id].name, *port);
    config_["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"] = number(kind_.watchdog_poll_ms);
    return config_.dump(4) + "\n";
  }

 private:
  // Joins neighboring priorities into one entry such as "3-4"; `wanted` selects them.
  template <class Wanted>
  std::vector<std::string> ranges(Wanted wanted) const {
    std::vector<std::string> out;
    for (std::size_t first = 0; first < priorities; ++first) {
      if (!wanted(first)) continue;
      auto last = first;
      while (last + 1 < priorities && wanted(last + 1)) ++last;
      out.push_back(first == last ? number(first) : fmt::format("{}-{}", first, last));
      first = last;
    }
    return out;
  }
  bool lossless(std::size_t priority) const { return network_.classes.is_lossless(priority); }
  // The priority group of all lossy traffic: one without PFC. `priorities`: there is no such traffic.
  std::size_t lossy_group() const {
    std::size_t group = 0;
    while (group < priorities && lossless(group)) ++group;
    return group;
  }
  bool strict(std::size_t priority) const {
    return std::ranges::find(network_.classes.strict, priority) != network_.classes.strict.end();
  }

  void pools() {
    const auto& split = kind_.split;
    assert(split.fits);
    auto& pools = config_["BUFFER_POOL"];
    const auto size = split.shared + (kind_.model->pool_includes_headroom ? split.headroom : 0);
    const bool single = layout() == PoolLayout::one;
    pools["ingress_lossless_pool"] = {
        {"type", single ? "both" : "ingress"}, {"mode", "dynamic"}, {"size", number(size)}};
    if (kind_.model->headroom_pool == HeadroomPool::shared)
      pools["ingress_lossless_pool"]["xoff"] = number(split.headroom);
    if (single) return;
    // All of it: ingress has admitted a lossless class, so egress must never drop it.
    pools["egress_lossless_pool"] = {{"type", "egress"},
                                     {"mode", kind_.model->pools.egress_is_static ? "static" : "dynamic"},
                                     {"size", number(egress_pool())}};
    if (layout() == PoolLayout::three || lossy_pool())
      pools["egress_lossy_pool"] = {
          {"type", "egress"}, {"mode", "dynamic"}, {"size", number(lossy_pool().value_or(split.shared))}};
  }

  PoolLayout layout() const { return kind_.model->pools.layout; }
  std::optional<std::uint64_t> lossy_pool() const { return kind_.model->pools.lossy_pool_bytes; }
  std::uint64_t egress_pool() const { return kind_.model->egress_pool_bytes.value_or(kind_.split.buffer); }

  void profiles() {
    auto& profiles = config_["BUFFER_PROFILE"];
    const bool shared_headroom = kind_.model->headroom_pool == HeadroomPool::shared;
    for (const auto& port : kind_.ports) {
      profiles[port.profile] = {{"pool", "ingress_lossless_pool"},
                                {"size", number(shared_headroom ? port.headroom.xon : port.size())},
                                {"xon", number(port.headroom.xon)},
                                {"xoff", number(port.xoff)},
                                {"xon_offset", number(kind_.xon_offset)},
                                {"dynamic_th", std::to_string(kind_.dynamic_th)}};
      wred(port);
    }
    if (layout() != PoolLayout::three) return profiles_of_shared_pools(profiles);
    profiles["ingress_lossy_profile"] = {
        {"pool", "ingress_lossless_pool"}, {"size", "0"}, {"dynamic_th", std::to_string(lossy_dynamic_th)}};
    const auto widest = std::to_string(widest_dynamic_th);
    profiles["ingress_lossless_profile"] = {
        {"pool", "ingress_lossless_pool"}, {"size", "0"}, {"dynamic_th", widest}};
    profiles["egress_lossless_profile"] = {
        {"pool", "egress_lossless_pool"}, {"size", "0"}, {"dynamic_th", widest}};
    profiles["egress_lossy_profile"] = {
        {"pool", "egress_lossy_pool"}, {"size", number(lossy_port_minimum)}, {"dynamic_th", widest}};
    profiles["q_lossy_profile"] = {
        {"pool", "egress_lossy_pool"}, {"size", "0"}, {"dynamic_th", std::to_string(lossy_dynamic_th)}};
  }

  // Broadcom's: what may be lost shares the pools of the lossless classes.
  void profiles_of_shared_pools(SortedJson& profiles) const {
    const auto& pools = kind_.model->pools;
    const bool single = layout() == PoolLayout::one;
    const char* egress = single ? "ingress_lossless_pool" : "egress_lossless_pool";
    profiles["ingress_lossy_profile"] = {{"pool", "ingress_lossless_pool"}, {"size", "0"}};
    if (single)
      profiles["ingress_lossy_profile"].update({{"xon_offset", "0"}, {"dynamic_th", "0"}});
    else
      profiles["ingress_lossy_profile"]["static_th"] = number(kind_.split.shared + kind_.split.headroom);
    profiles["egress_lossless_profile"] = {{"pool", egress}, {"size", "0"}};
    if (pools.lossless_static_th)
      profiles["egress_lossless_profile"]["static_th"] = number(*pools.lossless_static_th);
    else
      profiles["egress_lossless_profile"]["dynamic_th"] = std::to_string(pools.lossless_dynamic_th);
    profiles["egress_lossy_profile"] = {{"pool", lossy_pool() ? "egress_lossy_pool" : egress},
                                        {"size", number(pools.lossy_bytes)},
                                        {"dynamic_th", std::to_string(pools.lossy_dynamic_th)}};
  }

  static std::string wred_name(const PortPlan& port) {
    return fmt::format("WEIR_LOSSLESS_{}", port.speed_bps / 1'000'000);
  }

  void wred(const PortPlan& port) {
    SortedJson profile = {{"ecn", "ecn_all"}};
    const auto percent = std::max(1l, std::lround(port.marks.pmax * 100));
    for (const auto* color : {"green", "yellow", "red"}) {
      profile[fmt::format("wred_{}_enable", color)] = "true";
      profile[fmt::format("{}_min_threshold", color)] = number(port.marks.kmin_bytes);
      profile[fmt::format("{}_max_threshold", color)] = number(port.marks.kmax_bytes);
      profile[fmt::format("{}_drop_probability", color)] = std::to_string(percent);
    }
    config_["WRED_PROFILE"][wred_name(port)] = std::move(profile);
  }

  void maps() {
    const auto& classes = network_.classes;
    config_["PORT_QOS_MAP"]["global"]["dscp_to_tc_map"] = map_name;
    for (std::size_t dscp = 0; dscp < dscps; ++dscp)
      config_["DSCP_TO_TC_MAP"][map_name][number(dscp)] = number(classes.dscp_to_priority[dscp]);
    for (std::size_t priority = 0; priority < priorities; ++priority) {
      const auto name = number(priority);
      config_["TC_TO_QUEUE_MAP"][map_name][name] = name;
      config_["TC_TO_PRIORITY_GROUP_MAP"][map_name][name] =
          lossless(priority) || priority == network_control ? name : number(lossy_group());
      config_["MAP_PFC_PRIORITY_TO_QUEUE"][map_name][name] = name;
      if (lossless(priority)) config_["PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"][map_name][name] = name;
    }
    auto& schedulers = config_["SCHEDULER"];
    schedulers[lossy_scheduler] = {{"type", "DWRR"}, {"weight", std::to_string(lossy_weight)}};
    schedulers[lossless_scheduler] = {{"type", "DWRR"}, {"weight", std::to_string(lossless_weight)}};
    if (!classes.strict.empty()) schedulers[strict_scheduler] = {{"type", "STRICT"}};
  }

  void add_port(const std::string& name, const PortPlan& port) {
    const auto meters = std::ceil((port.cable.length_m + port.cable.return_length_m) / 2);
    config_["CABLE_LENGTH"][map_name][name] = fmt::format("{:.0f}m", meters);
    const auto is_lossless = [this](std::size_t p) { return lossless(p); };
    const auto is_lossy = [this](std::size_t p) { return !lossless(p); };
    const auto of = [&name](std::string_view which) { return fmt::format("{}|{}", name, which); };
    for (const auto& range : ranges(is_lossless)) {
      config_["BUFFER_PG"][of(range)]["profile"] = port.profile;
      config_["BUFFER_QUEUE"][of(range)]["profile"] = "egress_lossless_profile";
    }
    if (lossy_group() < priorities)
      config_["BUFFER_PG"][of(number(lossy_group()))]["profile"] = "ingress_lossy_profile";
    const bool own_pool = layout() == PoolLayout::three;
    for (const auto& range : ranges(is_lossy))
      config_["BUFFER_QUEUE"][of(range)]["profile"] = own_pool ? "q_lossy_profile" : "egress_lossy_profile";
    if (own_pool) {  // SONiC's templates have these lists for Spectrum only
      config_["BUFFER_PORT_INGRESS_PROFILE_LIST"][name]["profile_list"] = "ingress_lossless_profile";
      config_["BUFFER_PORT_EGRESS_PROFILE_LIST"][name]["profile_list"] =
          "egress_lossless_profile,egress_lossy_profile";
    }
    for (std::size_t priority = 0; priority < priorities; ++priority) {
      auto& queue = config_["QUEUE"][of(number(priority))];
      queue["scheduler"] = strict(priority)     ? strict_scheduler
                           : lossless(priority) ? lossless_scheduler
                                                : lossy_scheduler;
      if (lossless(priority)) queue["wred_profile"] = wred_name(port);
    }
    const auto list = fmt::format("{}", fmt::join(network_.classes.lossless, ","));
    config_["PORT_QOS_MAP"][name] = {{"dscp_to_tc_map", map_name}, {"tc_to_queue_map", map_name},
                                     {"tc_to_pg_map", map_name},   {"pfc_to_queue_map", map_name},
                                     {"pfc_to_pg_map", map_name},  {"pfc_enable", list},
                                     {"pfcwd_sw_enable", list}};
    config_["PFC_WD"][name] = {{"action", network_.overrides.watchdog_action},
                               {"detection_time", number(kind_.watchdog_detection_ms)},
                               {"restoration_time", number(kind_.watchdog_restoration_ms)}};
    if (!network_.overrides.pfc_stat_history.empty())
      config_["PFC_WD"][name]["pfc_stat_history"] = network_.overrides.pfc_stat_history;
  }

  const Network& network_;
  const SwitchPlan& kind_;
  NodeId at_;
  std::vector<std::pair<PortId, const PortPlan*>> plan_of_;
  SortedJson config_;
};

}  // namespace

std::string sonic_config(const Plan& plan, const SwitchPlan& kind, NodeId at) {
  return SonicConfig(plan, kind, at).text();
}

std::string sonic_remark(const SwitchPlan& kind) {
  if (!kind.model->pool_includes_headroom) return {};
  return fmt::format(
      "{}: the size of ingress_lossless_pool includes its xoff of {}, as in SONiC's own template for this "
      "switch; "
      "whether the chip's SAI counts so is disputed (sonic-net/sonic-buildimage 28657), so compare the "
      "limits that "
      "the switch reports with the file",
      kind.model->name, kind.split.headroom);
}

}  // namespace weir::fabric

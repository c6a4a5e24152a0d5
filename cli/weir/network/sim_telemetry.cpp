#include "cli/weir/network/sim_telemetry.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/json_text.hpp"
#include "cli/weir/module.hpp"

namespace weir::command {
namespace {

namespace sim = fabric::sim;

// The values are text, like SONiC's, which come from Redis.
class Counters {
 public:
  void add(std::string_view name, std::uint64_t value) {
    fmt::format_to(std::back_inserter(text_), "{}\"{}\":\"{}\"", text_.empty() ? "" : ",", name, value);
  }
  bool empty() const { return text_.empty(); }
  std::string object() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string port_counters(const sim::Simulation& simulation, std::uint32_t port) {
  Counters counters;
  for (unsigned i = 0; i < sim::priorities; ++i) {
    const auto& pfc = simulation.pfc(port, i);
    const auto& group = simulation.group(port, i);
    const auto add = [&](const char* name, std::uint64_t value) {
      counters.add(fmt::format("SAI_PORT_STAT_PFC_{}_{}", i, name), value);
    };
    if (const auto sent = group.xoff_sent + group.xon_sent; sent != 0) add("TX_PKTS", sent);
    if (pfc.received_xoff + pfc.received_xon == 0) continue;
    add("RX_PKTS", pfc.received_xoff + pfc.received_xon);
    add("ON2OFF_RX_PKTS", pfc.stops);
    add("RX_PAUSE_DURATION_US", simulation.paused_time(port, i) / sim::ticks_per_us);
  }
  return counters.empty() ? std::string() : counters.object();
}

template <class Fill>
std::string by_priority(const std::string& port, Fill fill) {
  std::string out;
  for (unsigned i = 0; i < sim::priorities; ++i) {
    Counters counters;
    fill(i, counters);
    if (!counters.empty())
      fmt::format_to(std::back_inserter(out), "{}{}:{}", out.empty() ? "{" : ",",
                     json_string(fmt::format("{}:{}", port, i)), counters.object());
  }
  return out.empty() ? out : out + "}";
}

std::string queue_counters(const sim::Simulation& simulation, std::uint32_t port) {
  return by_priority(simulation.fabric().ports[port].name, [&](unsigned i, Counters& counters) {
    const auto& queue = simulation.queue(port, i);
    if (queue.sent_packets == 0 && queue.bytes_most == 0 && queue.dropped == 0) return;
    counters.add("SAI_QUEUE_STAT_PACKETS", queue.sent_packets);
    counters.add("SAI_QUEUE_STAT_BYTES", queue.sent_bytes);
    counters.add("SAI_QUEUE_STAT_DROPPED_PACKETS", queue.dropped);
    counters.add("SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", queue.marked);
    counters.add("SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES", queue.bytes);
    counters.add("SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", queue.bytes_most);
  });
}

std::string group_counters(const sim::Simulation& simulation, std::uint32_t port) {
  const auto& from = simulation.fabric().ports[port];
  const std::uint64_t cell = simulation.pool(from.node).cell_bytes;
  return by_priority(from.name, [&](unsigned i, Counters& counters) {
    const auto& group = simulation.group(port, i);
    if (group.shared_most == 0 && group.headroom_most == 0 && group.dropped == 0) return;
    counters.add("SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_CURR_OCCUPANCY_BYTES", group.used_shared * cell);
    counters.add("SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES", group.shared_most * cell);
    counters.add("SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_CURR_OCCUPANCY_BYTES",
                 group.used_headroom * cell);
    counters.add("SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES", group.headroom_most * cell);
    counters.add("SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS", group.dropped);
  });
}

}  // namespace

std::expected<SimTelemetry, std::string> SimTelemetry::open(const std::string& collector,
                                                            std::uint64_t queue_bytes, std::int64_t began) {
  const auto function = module_function(telemetry_module_file, telemetry_module_function);
  if (!function) return std::unexpected(function.error());
  const auto& module = *reinterpret_cast<TelemetryModuleFunction*>(*function)();
  return SimTelemetry(module, module.open(collector.c_str(), queue_bytes), began);
}

SimTelemetry::SimTelemetry(const TelemetryModule& module, void* publisher, std::int64_t began)
    : module_(&module),
      publisher_(publisher),
      began_(began),
      sender_(fmt::format("weir-sim-{}-{}", ::getpid(), began)) {}

SimTelemetry::SimTelemetry(SimTelemetry&& other) noexcept
    : module_(other.module_),
      publisher_(std::exchange(other.publisher_, nullptr)),
      began_(other.began_),
      last_(other.last_),
      sender_(std::move(other.sender_)),
      ports_of_(std::move(other.ports_of_)),
      sent_(std::move(other.sent_)) {}

SimTelemetry::~SimTelemetry() { close(0); }

void SimTelemetry::send(const sim::Simulation& simulation) {
  const auto& fabric = simulation.fabric();
  if (ports_of_.empty()) {
    ports_of_.resize(fabric.nodes.size());
    sent_.resize(fabric.ports.size() * 3);
    for (std::uint32_t p = 0; p < fabric.ports.size(); ++p) ports_of_[fabric.ports[p].node].push_back(p);
  }
  for (std::uint32_t node = 0; node < fabric.nodes.size(); ++node)
    send_node(simulation, node, ports_of_[node]);
}

void SimTelemetry::send_node(const sim::Simulation& simulation, std::uint32_t node,
                             const std::vector<std::uint32_t>& ports) {
  const auto& fabric = simulation.fabric();
  std::vector<std::pair<std::string, std::string>> changed;
  for (const std::uint32_t port : ports) {
    const std::pair<const char*, std::string> now[] = {{"", port_counters(simulation, port)},
                                                       {"/Queues", queue_counters(simulation, port)},
                                                       {"/PriorityGroups", group_counters(simulation, port)}};
    for (std::size_t i = 0; i < std::size(now); ++i) {
      auto& before = sent_[std::size_t{port} * 3 + i];
      if (now[i].second == before) continue;
      before = now[i].second;
      changed.emplace_back("COUNTERS/" + fabric.ports[port].name + now[i].first, before);
    }
  }
  if (changed.empty()) return;
  std::vector<TelemetryValue> values;
  for (const auto& [path, json] : changed) values.push_back({path.c_str(), json.c_str()});
  // A collector recognizes repeated notifications by their timestamps, which must grow.
  last_ = std::max(last_ + 1, began_ + static_cast<std::int64_t>(simulation.now() / sim::ticks_per_ns));
  const TelemetryNotification notification{sender_.c_str(), last_, fabric.nodes[node].name.c_str(),
                                           values.data(), values.size()};
  module_->push(publisher_, &notification);
}

TelemetryCounts SimTelemetry::close(std::uint32_t wait_ms) {
  if (publisher_ == nullptr) return {};
  return module_->close(std::exchange(publisher_, nullptr), wait_ms);
}

}  // namespace weir::command

#include "fabric/sim/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "fabric/sim/event_queue.hpp"
#include "fabric/sim/traffic/flow_list.hpp"
#include "fabric/sim/traffic/goal_trace.hpp"
#include "fabric/sim/traffic/size_distribution.hpp"

namespace weir::fabric::sim {
namespace {

constexpr Range any_delay{0, longest_run_ns};

class ScenarioReader {
 public:
  ScenarioReader(Table& root, const FileOpener& open, Complaints& complaints, const MoreTables& more)
      : root_(root), open_(open), complaints_(complaints), more_(more) {}

  std::optional<Scenario> read() {
    if (!read_the_network()) return std::nullopt;
    for (std::uint32_t n = 0; n < network().nodes.size(); ++n)
      if (network().nodes[n].kind == NodeKind::host) {
        address_.push_back(static_cast<std::uint32_t>(hosts_.size()));
        hosts_.push_back(n);
      } else {
        address_.push_back(none);
      }
    if (hosts_.size() < 2)
      complaints_.add(root_.place(), "fewer than two hosts", "somebody must send to somebody");
    for (const auto& detour : network().detours)
      complaints_.add(detour.place, "packets of a [[detour]] are not simulated, only planned for",
                      "leave it out of what weir sim reads");
    check_ports();
    check_speeds();
    read_knobs(scenario_.knobs, root_);
    if (!complaints_.none()) return std::nullopt;
    if (more_) more_(root_);
    auto workloads = root_.tables("workload");
    for (auto& table : workloads) read_workload(table);
    if (workloads.empty() && !more_)
      root_.missing("workload",
                    "add a [[workload]] with kind = \"incast\", \"permutation\", \"all-to-all\", \"flows\", "
                    "\"poisson\", \"poisson-incast\", \"all-reduce\" or \"goal\"");
    if (const auto trouble = beyond_a_run(scenario_, scenario_.knobs); !trouble.empty())
      root_.complain("workload", trouble, "a shorter run, a lower load, fewer hosts or larger packets");
    for (auto& table : root_.tables("link_failure")) read_failure(table);
    for (auto& table : root_.tables("storm")) read_storm(table);
    read_watchdog();
    root_.finish();
    if (!complaints_.none()) return std::nullopt;
    check_buffers();
    if (!complaints_.none()) return std::nullopt;
    return std::move(scenario_);
  }

 private:
  const Network& network() const { return *scenario_.network; }

  bool read_the_network() {
    std::optional<Network> network;
    if (root_.has("network")) {
      const auto name = root_.string("network");
      if (!name) return false;
      const auto text = open_(*name);
      if (!text) {
        root_.complain("network", fmt::format("'{}' cannot be read", *name),
                       "name a network file, relative to this one");
        return false;
      }
      network = read_network(*text, *name, open_, complaints_);
      if (const auto title = root_.string("name"); title && network) network->name = *title;
    } else {
      network = read_network(root_, open_, complaints_);
    }
    if (!network) return false;
    scenario_.network = std::make_unique<Network>(std::move(*network));
    scenario_.name = scenario_.network->name;
    return true;
  }

  void check_ports() {
    if (const auto ports = network().ports.size(); ports > PortEvents::most_ports)
      complaints_.add(
          root_.place(), fmt::format("{} ports in the network", ports),
          fmt::format("the simulator takes {}: fewer hosts, or fewer links", PortEvents::most_ports));
  }

  // A byte must take a whole number of ticks. Ethernet speeds up to 800G satisfy this.
  void check_speeds() {
    for (const auto& link : network().links) {
      const double gbps = static_cast<double>(link.speed_bps) / 1e9;
      const double exact = 800 / gbps;
      if (std::abs(ticks_per_byte(gbps) - exact) < 0.01 * exact) continue;
      complaints_.add(link.place, fmt::format("the simulator cannot send at {:g}G", gbps),
                      "use a speed of Ethernet up to 800G, such as 25G, 100G, 200G, 400G");
      return;
    }
  }

  void check_buffers() {
    PlanOptions options;
    options.failures = FailureScope::none;
    scenario_.plan = plan_network(network(), options);
    if (const auto trouble = headroom_beyond_buffer(scenario_, scenario_.knobs); !trouble.empty())
      complaints_.add(
          network()[scenario_.plan.switches.front().switches.front()].place, trouble,
          "fewer lossless priorities, shorter cables, a larger switch or less headroom; or set both "
          "headroom and shared in [buffer]");
  }

  std::optional<std::uint32_t> host(const At<std::string>& name) {
    const auto found = network().find(name.value);
    if (found && address_[found->index] != none) return address_[found->index];
    complaints_.add(name.place, fmt::format("'{}' is no host", name.value), "name a host of the network");
    return std::nullopt;
  }
  std::optional<std::uint32_t> host(Table& table, std::string_view key) {
    const auto name = table.string(key);
    if (!name) {
      if (!table.has(key)) table.missing(key, "name a host");
      return std::nullopt;
    }
    return host({*name, table.place(key)});
  }

  Ticks time(Table& table, std::string_view key, double otherwise_ns) {
    return from_ns(table.quantity(key, Unit::nanoseconds, any_delay).value_or(otherwise_ns));
  }

  static std::optional<std::uint8_t> priority(Table& table) {
    const auto given = table.integer("priority", {0, 7});
    return given ? std::optional(static_cast<std::uint8_t>(*given)) : std::nullopt;
  }

  std::vector<std::uint32_t> hosts_or_all(Table& table, std::string_view key) {
    std::vector<std::uint32_t> list;
    for (const auto& name : table.strings(key))
      if (const auto found = host(name)) list.push_back(*found);
    if (list.empty())
      for (std::uint32_t h = 0; h < hosts_.size(); ++h) list.push_back(h);
    std::vector<std::uint32_t> sorted = list;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      table.complain(key, "a host is named twice", "name each once");
    return list;
  }

  void read_workload(Table& table) {
    Workload workload;
    const auto kind = table.word("kind", {"incast", "permutation", "all-to-all", "flows", "poisson",
                                          "poisson-incast", "all-reduce", "ring-allreduce", "goal"});
    if (!kind) {
      if (!table.has("kind")) table.missing("kind", "say what the hosts send: kind = \"incast\"");
      return;
    }
    workload.name = table.string("name").value_or(*kind);
    workload.priority = priority(table);
    workload.start = time(table, "start", 0);
    if (*kind != "poisson" && *kind != "flows" && *kind != "goal")
      workload.bytes =
          static_cast<std::uint64_t>(table.quantity("bytes", Unit::bytes, {1, 4e12}).value_or(1e6));
    if (*kind == "incast" || *kind == "permutation" || *kind == "all-to-all") {
      workload.repeat = static_cast<std::uint32_t>(table.integer("repeat", {1, 1'000'000}).value_or(1));
      workload.every = time(table, "every", 1e6);
    }
    if (*kind == "incast") {
      read_incast(table, workload);
    } else if (*kind == "flows") {
      workload.pattern = Pattern::flows;
      read_listed(table, workload);
    } else {
      workload.hosts = hosts_or_all(table, "hosts");
      if (workload.hosts.size() < 2) table.complain("hosts", "fewer than two hosts", "name two or more");
      if (*kind == "permutation") workload.pattern = Pattern::permutation;
      if (*kind == "all-to-all") workload.pattern = Pattern::all_to_all;
      if (*kind == "all-reduce" || *kind == "ring-allreduce") workload.pattern = Pattern::all_reduce;
      if (*kind == "all-reduce") read_all_reduce(table, workload);
      if (*kind == "poisson") read_poisson(table, workload);
      if (*kind == "poisson-incast") read_poisson_incast(table, workload);
      if (*kind == "goal") read_goal(table, workload);
    }
    table.finish();
    if (!complaints_.none()) return;
    scenario_.workloads.push_back(std::move(workload));
  }

  void read_incast(Table& table, Workload& workload) {
    workload.pattern = Pattern::incast;
    // If the receiver is unknown, read the other keys anyway: keys that are not
    // read count as unknown.
    const auto receiver = table.has("receiver") ? host(table, "receiver") : std::optional<std::uint32_t>(0);
    workload.receiver = receiver.value_or(0);
    if (table.has("from")) {
      workload.hosts = hosts_or_all(table, "from");
    } else {
      const auto others = static_cast<double>(hosts_.size() - 1);
      const auto senders = table.integer("senders", {1, others});
      // Start with the farthest and use whole strides, so that a few senders are not all under one switch.
      const auto count = static_cast<std::uint32_t>(senders.value_or(static_cast<std::int64_t>(others)));
      for (std::uint32_t i = 0; i < count; ++i)
        workload.hosts.push_back(static_cast<std::uint32_t>(
            (workload.receiver + 1 + std::uint64_t{i} * (hosts_.size() - 1) / count) % hosts_.size()));
    }
    if (receiver && std::ranges::find(workload.hosts, *receiver) != workload.hosts.end())
      table.complain("from", "the receiver sends to itself", "leave it out");
  }

  void read_listed(Table& table, Workload& workload) {
    if (table.has("file")) return replay(table, workload);
    auto list = table.tables("flow");
    if (list.empty())
      table.missing("flow", "add [[workload.flow]] with from, to and bytes, or file = \"flows.csv\"");
    for (auto& row : list) {
      const auto from = host(row, "from");
      const auto to = host(row, "to");
      const auto bytes = row.quantity("bytes", Unit::bytes, {1, 4e12});
      if (!row.has("bytes")) row.missing("bytes", "how much is sent");
      const Ticks start = time(row, "start", 0);
      row.finish();
      if (!from || !to || !bytes) continue;
      if (*from == *to) row.complain("to", "a flow from a host to itself", "name two hosts");
      workload.listed.push_back({*from, *to, static_cast<std::uint64_t>(*bytes), start});
    }
  }

  void replay(Table& table, Workload& workload) {
    const auto name = table.string("file");
    if (!name) return;
    const auto text = open_(*name);
    if (!text)
      return table.complain("file", fmt::format("'{}' cannot be read", *name),
                            "name a CSV file of flows, relative to this one");
    for (const auto& row : read_flow_list(*text, *name, complaints_)) {
      const auto from = host({row.from, row.place}), to = host({row.to, row.place});
      if (!from || !to) continue;
      if (*from == *to) complaints_.add(row.place, "a flow from a host to itself", "name two hosts");
      workload.listed.push_back({*from, *to, row.bytes, workload.start + row.start});
    }
  }

  void read_all_reduce(Table& table, Workload& workload) {
    const auto name =
        table.word("algorithm", {"ring", "direct", "halving-doubling", "tree"}).value_or("ring");
    workload.all_reduce.algorithm = name == "direct"             ? AllReduceBy::direct
                                    : name == "halving-doubling" ? AllReduceBy::halving_doubling
                                    : name == "tree"             ? AllReduceBy::tree
                                                                 : AllReduceBy::ring;
    if (name == "halving-doubling" && !is_power_of_two(workload.hosts.size()))
      table.complain("algorithm", fmt::format("{} hosts are no power of two", workload.hosts.size()),
                     "name 2, 4, 8, ... hosts, or take another algorithm");
    if (name == "tree")
      workload.all_reduce.chunks =
          static_cast<std::uint32_t>(table.integer("chunks", {1, 65536}).value_or(16));
  }

  void read_goal(Table& table, Workload& workload) {
    workload.pattern = Pattern::goal;
    if (!table.has("file")) return table.missing("file", "name a trace in GOAL, relative to this file");
    const auto name = table.string("file");
    if (!name) return;
    const auto text = open_(*name);
    if (!text)
      return table.complain("file", fmt::format("'{}' cannot be read", *name),
                            "name a trace in GOAL, relative to this file");
    workload.trace = read_goal_trace(*text, *name, workload.hosts, complaints_);
  }

  void read_poisson_incast(Table& table, Workload& workload) {
    workload.pattern = Pattern::poisson_incast;
    const auto most = static_cast<double>(std::max<std::size_t>(workload.hosts.size(), 2) - 1);
    workload.senders = static_cast<std::uint32_t>(
        table.integer("senders", {1, most}).value_or(static_cast<std::int64_t>(std::min(most, 60.0))));
    workload.load = table.quantity("load", Unit::fraction, {0.0001, 2}).value_or(0.02);
    workload.until = time(table, "until", 0);
  }

  void read_poisson(Table& table, Workload& workload) {
    workload.pattern = Pattern::poisson;
    const auto sizes = table.word("sizes", {"websearch", "hadoop"});
    workload.sizes = find_size_distribution(sizes.value_or("websearch"));
    workload.load = table.quantity("load", Unit::fraction, {0.001, 2}).value_or(0.5);
    workload.until = time(table, "until", 0);
  }

  void read_failure(Table& table) {
    LinkFailure failure;
    const auto ends = table.strings("between");
    if (ends.size() != 2)
      return table.complain("between", "a link has two ends", "between = [\"leaf1\", \"spine1\"]");
    std::optional<NodeId> nodes[2];
    for (int e = 0; e < 2; ++e) {
      nodes[e] = network().find(ends[e].value);
      if (!nodes[e])
        return complaints_.add(ends[e].place, fmt::format("'{}' is no node", ends[e].value),
                               "name a node of the network");
    }
    bool found = false;
    for (const auto port : network()[*nodes[0]].ports)
      if (!found && network().neighbor(port) == *nodes[1]) {
        failure.link = network()[port].link;
        found = true;
      }
    if (!found) return table.complain("between", "these two have no link", "name neighbours");
    failure.at = time(table, "at", 0);
    failure.back = time(table, "back", 0);
    failure.convergence = time(table, "convergence", 1e6);
    if (failure.back != 0 && failure.back <= failure.at)
      table.complain("back", "the link is back before it is gone", "a time after `at`");
    table.finish();
    scenario_.failures.push_back(failure);
  }

  void read_storm(Table& table) {
    StormHost storm;
    const auto at = host(table, "host");
    storm.start = time(table, "from", 0);
    if (table.has("until")) storm.end = time(table, "until", 0);
    storm.priority = priority(table);
    if (storm.end.value_or(from_ns(scenario_.knobs.duration_ns)) <= storm.start)
      table.complain(table.has("from") ? "from" : "until", "the storm is over before it begins",
                     "`until` is a time after `from`; simulation.duration where it is left out");
    if (const auto named = storm.priority.value_or(static_cast<std::uint8_t>(scenario_.knobs.priority));
        !network().classes.is_lossless(named))
      table.complain("priority",
                     fmt::format("priority {} is not lossless: switches take no pause for it", named),
                     "name one of the lossless priorities");
    table.finish();
    if (!at) return;
    storm.host = *at;
    scenario_.storms.push_back(storm);
  }

  void read_watchdog() {
    auto table = root_.table("watchdog");
    if (!table) return;
    auto& watchdog = scenario_.watchdog;
    watchdog.on = true;
    const auto action = table->word("action", {"drop", "forward", "alert"}).value_or("drop");
    watchdog.action = action == "drop"      ? WatchdogAction::drop
                      : action == "forward" ? WatchdogAction::forward
                                            : WatchdogAction::alert;
    // SONiC's ranges start at 100 ms; shorter times show their effect in a short run.
    constexpr Range allowed{1e3, 60e9};
    watchdog.poll = from_ns(table->quantity("poll", Unit::nanoseconds, allowed).value_or(200e6));
    watchdog.detection = from_ns(table->quantity("detection", Unit::nanoseconds, allowed).value_or(200e6));
    watchdog.restoration =
        from_ns(table->quantity("restoration", Unit::nanoseconds, allowed).value_or(200e6));
    table->finish();
  }

  Table& root_;
  const FileOpener& open_;
  Complaints& complaints_;
  const MoreTables& more_;
  Scenario scenario_;
  std::vector<std::uint32_t> hosts_;    // nodes
  std::vector<std::uint32_t> address_;  // by node
};

}  // namespace

std::string headroom_beyond_buffer(const Scenario& scenario, const Knobs& knobs) {
  if (knobs.headroom_bytes && knobs.shared_bytes) return {};
  for (const auto& plan : scenario.plan.switches) {
    double groups = 0;
    for (const auto& port : plan.ports)
      groups += static_cast<double>(port.ports_per_switch * scenario.network->classes.lossless.size());
    const double headroom =
        knobs.headroom_bytes ? *knobs.headroom_bytes * groups : static_cast<double>(plan.split.headroom);
    const auto rest = plan.split.reserved + plan.split.guaranteed;
    if (headroom + static_cast<double>(rest) >= static_cast<double>(plan.split.buffer))
      return fmt::format("the buffer of {} ({} bytes) is smaller than its headroom ({:.0f} bytes)",
                         (*scenario.network)[plan.switches.front()].name, plan.split.buffer, headroom);
  }
  return {};
}

std::string beyond_a_run(const Scenario& scenario, const Knobs& knobs) {
  double fastest_gbps = 0, flows = 0;
  for (const auto& link : scenario.network->links)
    fastest_gbps = std::max(fastest_gbps, static_cast<double>(link.speed_bps) / 1e9);
  for (const auto& workload : scenario.workloads) {
    flows += expected_flows(workload, knobs, fastest_gbps);
    std::uint64_t largest = workload.bytes;
    for (const auto& flow : workload.listed) largest = std::max(largest, flow.bytes);
    for (const auto& flow : workload.trace.flows) largest = std::max(largest, flow.bytes);
    if (largest / knobs.transport.mtu_bytes >= std::numeric_limits<std::uint32_t>::max())
      return fmt::format("a flow of {} bytes is more packets of {} than can be counted", largest,
                         knobs.transport.mtu_bytes);
  }
  if (flows <= most_flows) return {};
  return fmt::format("the workloads are about {:.0f} million flows, more than 20 million", flows / 1e6);
}

std::optional<Scenario> read_scenario(std::string_view text, std::string file, const FileOpener& open,
                                      Complaints& complaints) {
  return read_scenario(text, std::move(file), open, complaints, {});
}

std::optional<Scenario> read_scenario(std::string_view text, std::string file, const FileOpener& open,
                                      Complaints& complaints, const MoreTables& more) {
  const auto document = Document::parse(text, std::move(file), complaints);
  if (!document) return std::nullopt;
  auto root = document->root(complaints);
  return ScenarioReader(root, open, complaints, more).read();
}

std::optional<Scenario> load_scenario(const std::string& path, Complaints& complaints) {
  return load_scenario(path, complaints, {});
}

std::optional<Scenario> load_scenario(const std::string& path, Complaints& complaints,
                                      const MoreTables& more) {
  const auto text = read_text(path);
  if (!text) {
    complaints.add({std::make_shared<const std::string>(path), 0, 0},
                   std::string("cannot be read: ") + std::strerror(errno), "name a scenario file");
    return std::nullopt;
  }
  const auto beside = std::filesystem::path(path).parent_path();
  return read_scenario(
      *text, path, [&](const std::string& name) { return read_text(beside / name); }, complaints, more);
}

}  // namespace weir::fabric::sim

#include "cli/benchmark/plan.hpp"

#include <utility>

namespace weir::benchmark {

LoadPlan plan_for(const Options& options, client::Endpoint endpoint, const std::atomic<bool>& stop) {
  LoadPlan plan;
  plan.endpoint = std::move(endpoint);
  plan.login = options.server.login;
  plan.clients = options.clients.front();
  plan.requests = options.requests;
  plan.duration_s = options.duration_s;
  plan.pipeline = options.pipeline.front();
  plan.threads = options.threads;
  if (options.rate_per_s) plan.rate_per_s = static_cast<double>(options.rate_per_s);
  plan.keyspace = options.keyspace;
  plan.keys = options.keys;
  plan.seed = options.seed;
  plan.keep_alive = options.keep_alive;
  plan.pinned_cpus = options.pinned_cpus;
  plan.stop = &stop;
  return plan;
}

client::Result<LoadPlan> spread_over_cluster(LoadPlan plan) {
  auto nodes = find_cluster_nodes(plan.endpoint, plan.login, plan.connect_limit);
  if (!nodes) return std::unexpected(std::move(nodes.error()));
  if (plan.clients < nodes->size())
    return client::fail(client::ErrorKind::usage,
                        "the cluster has " + std::to_string(nodes->size()) +
                            " primaries and each wants a connection: give -c at least as many");
  plan.nodes = std::move(*nodes);
  return plan;
}

client::Result<std::vector<Workload>> workloads_of(const Options& options) {
  const KeyStyle keys{options.keyspace > 0, options.cluster};
  if (!options.mix.empty()) {
    auto mixed = mixed_workload(options.mix, options.data_bytes, keys);
    if (!mixed) return std::unexpected(std::move(mixed.error()));
    return std::vector{std::move(*mixed)};
  }
  if (options.command.empty()) return standard_workloads(options.tests, options.data_bytes, keys);
  Workload own{{}, options.command};
  for (const auto& word : own.arguments) own.title += (own.title.empty() ? "" : " ") + word.substr(0, 64);
  return std::vector{std::move(own)};
}

}  // namespace weir::benchmark

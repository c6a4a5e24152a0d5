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
  plan.keyspace = options.keyspace;
  plan.seed = options.seed;
  plan.keep_alive = options.keep_alive;
  plan.pinned_cpus = options.pinned_cpus;
  plan.stop = &stop;
  return plan;
}

client::Result<std::vector<Workload>> workloads_of(const Options& options) {
  if (options.command.empty())
    return standard_workloads(options.tests, options.data_bytes, options.keyspace > 0);
  Workload own{{}, options.command};
  for (const auto& word : own.arguments) own.title += (own.title.empty() ? "" : " ") + word.substr(0, 64);
  return std::vector{std::move(own)};
}

}  // namespace weir::benchmark

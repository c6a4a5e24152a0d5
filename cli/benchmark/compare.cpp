#include "cli/benchmark/compare.hpp"

#include <algorithm>
#include <charconv>

#include "cli/benchmark/plan.hpp"
#include "cli/client/rdma_reactor.hpp"

namespace weir::benchmark {
namespace {

using client::ErrorKind;
using client::fail;
using client::Result;
using client::Transport;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const auto middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// The port that the server reports for the setting; 0: it has none or does not say.
std::uint16_t port_of(client::Session* server, const std::string& setting) {
  std::uint16_t port = 0;
  if (server) {
    const auto text = server_setting(*server, setting);
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  return port;
}

// Where the server uses this transport: from options, otherwise from its own report.
Result<client::Endpoint> locate(const Options& options, Transport transport, client::Session* server) {
  auto endpoint = options.server.endpoint();
  endpoint.transport = transport;
  const auto tls_port = options.tls_port ? *options.tls_port : port_of(server, "tls-port");
  switch (transport) {
    case Transport::tcp:
      break;
    case Transport::unix_socket:
      if (endpoint.path.empty() && server) endpoint.path = server_setting(*server, "unixsocket");
      if (endpoint.path.empty())
        return fail(ErrorKind::usage, "the server tells no unix socket; name it with -s");
      break;
    case Transport::tls:
      if (!tls_port) return fail(ErrorKind::usage, "the server tells no TLS port; name it with --tls-port");
      endpoint.port = tls_port;
      break;
    case Transport::rdma: {
      const auto told = port_of(server, "rdma-port");
      endpoint.port = options.rdma_port ? *options.rdma_port : told ? told : options.server.port;
      break;
    }
    case Transport::rdma_tls: {
      const auto told = port_of(server, "tls-rdma-port");
      endpoint.port = options.tls_rdma_port ? *options.tls_rdma_port : told ? told : tls_port;
      if (!endpoint.port)
        return fail(ErrorKind::usage,
                    "the server tells no port for TLS over RDMA; name it with --rdma-tls-port");
      break;
    }
  }
  return endpoint;
}

// GET measures nothing if the keys are missing.
Result<void> load_keys(const Options& options, LoadPlan plan) {
  const std::string names[] = {"set"};
  auto workloads = standard_workloads(names, options.data_bytes, {.random = options.keyspace > 0});
  if (!workloads) return std::unexpected(std::move(workloads.error()));
  plan.duration_s.reset();
  plan.requests = options.keyspace ? std::min<std::uint64_t>(2 * options.keyspace, 1'000'000) : 1;
  plan.clients = plan.threads = 1;
  plan.pipeline = std::min<std::uint64_t>(64, plan.requests);
  plan.keep_alive = true;
  auto done = run_load(plan, workloads->front());
  if (!done) return std::unexpected(std::move(done.error()));
  return {};
}

Measured medians(Transport transport, const std::vector<LoadResult>& rounds) {
  const auto of = [&](auto figure) {
    std::vector<double> values;
    for (const auto& round : rounds) values.push_back(figure(round));
    return values;
  };
  const auto percentile = [&](double percent) {
    return median(
        of([&](const LoadResult& r) { return static_cast<double>(r.latency.percentile_ns(percent)) / 1e3; }));
  };
  Measured row;
  row.transport = transport;
  row.rounds_ops_per_s = of([](const LoadResult& r) { return r.requests_per_second(); });
  row.ops_per_s = median(row.rounds_ops_per_s);
  row.p50_us = percentile(50);
  row.p90_us = percentile(90);
  row.p99_us = percentile(99);
  row.p999_us = percentile(99.9);
  row.max_us = percentile(100);
  row.cpu_wait_share = median(of([](const LoadResult& r) { return r.cpu_wait_share(); }));
  row.client_cpu_us = median(of([](const LoadResult& r) {
    return static_cast<double>(r.cpu_ns) / 1e3 / static_cast<double>(std::max<std::uint64_t>(1, r.requests));
  }));
  return row;
}

// One round: the load over each transport in turn. Empty if it was stopped before it was complete.
Result<std::vector<LoadResult>> run_round(const Options& options, const Workload& workload,
                                          const std::vector<LoadPlan>& plans, const std::string& title,
                                          std::size_t round, ProgressLine& progress) {
  std::vector<LoadResult> results;
  for (auto plan : plans) {
    plan.seed = options.seed + round;
    const std::string transport(name_of(plan.endpoint.transport));
    progress.begin(title + ", " + transport + ", round " + std::to_string(round + 1) + " of " +
                   std::to_string(options.repeats));
    auto result = run_load(plan, workload, &progress);
    if (plan.stopped()) return std::vector<LoadResult>{};
    if (!result) return fail(result.error().kind, transport + ": " + result.error().what);
    results.push_back(std::move(*result));
  }
  return results;
}

// Without rows if it was stopped before a round was complete.
Result<Case> measure(const Options& options, const Workload& workload, const std::vector<LoadPlan>& plans,
                     ProgressLine& progress) {
  Case measured{workload.title, plans.front().clients, plans.front().pipeline, {}};
  std::vector<std::vector<LoadResult>> rounds_of(plans.size());
  for (std::size_t round = 0; round < options.repeats; ++round) {
    auto results = run_round(options, workload, plans, title_of(measured), round, progress);
    if (!results) return std::unexpected(std::move(results.error()));
    if (results->empty()) break;
    for (std::size_t i = 0; i < plans.size(); ++i) rounds_of[i].push_back(std::move((*results)[i]));
  }
  if (rounds_of.front().empty()) return measured;
  for (std::size_t i = 0; i < plans.size(); ++i)
    measured.rows.push_back(medians(plans[i].endpoint.transport, rounds_of[i]));
  return measured;
}

void fill_ratios(Case& measured, Transport baseline) {
  const auto base = std::ranges::find(measured.rows, baseline, &Measured::transport);
  for (auto& row : measured.rows) row.ratio = base->ops_per_s > 0 ? row.ops_per_s / base->ops_per_s : 0;
}

}  // namespace

Result<Comparison> compare(const Options& options, ProgressLine& progress, const std::atomic<bool>& stop) {
  // Queries use the plainest transport. A server that does not offer it must be described by options.
  auto plain = options.server;
  plain.tls = plain.rdma = false;
  auto session = client::Session::open(plain.endpoint(), client::Milliseconds{2000});
  if (session)
    if (auto greeted = (*session)->log_in(options.server.login); !greeted)
      return std::unexpected(std::move(greeted.error()));
  client::Session* const server = session ? session->get() : nullptr;

  std::vector<client::Endpoint> endpoints;
  for (const auto transport : options.compare) {
    auto endpoint = locate(options, transport, server);
    if (!endpoint && !session)
      return fail(endpoint.error().kind,
                  endpoint.error().what + " (it could not be asked: " + session.error().what + ")");
    if (!endpoint) return std::unexpected(std::move(endpoint.error()));
    endpoints.push_back(std::move(*endpoint));
  }
  auto workloads = workloads_of(options);
  if (!workloads) return std::unexpected(std::move(workloads.error()));
  auto surroundings = look_around(options.pinned_cpus, server);
  if (std::ranges::any_of(options.compare, client::is_rdma)) {
    auto described = client::describe_rdma(options.server.rdma_settings);
    if (!described) return std::unexpected(std::move(described.error()));
    surroundings.rdma = std::move(*described);
  }
  if (auto loaded = load_keys(options, plan_for(options, endpoints.front(), stop)); !loaded)
    return std::unexpected(std::move(loaded.error()));

  Comparison comparison{std::move(surroundings), options.data_bytes,      options.repeats,
                        options.threads,         options.compare.front(), {}};
  comparison.rate_per_s = options.rate_per_s;
  if (std::ranges::find(options.compare, Transport::tcp) != options.compare.end())
    comparison.baseline = Transport::tcp;
  for (const auto clients : options.clients)
    for (const auto pipeline : options.pipeline) {
      std::vector<LoadPlan> plans;
      for (const auto& endpoint : endpoints) {
        plans.push_back(plan_for(options, endpoint, stop));
        plans.back().clients = clients;
        plans.back().pipeline = pipeline;
      }
      for (const auto& workload : *workloads) {
        auto measured = measure(options, workload, plans, progress);
        if (!measured) return std::unexpected(std::move(measured.error()));
        if (measured->rows.empty()) continue;
        fill_ratios(*measured, comparison.baseline);
        comparison.cases.push_back(std::move(*measured));
      }
    }
  progress.clear();
  return comparison;
}

std::string title_of(const Case& measured) {
  auto title = measured.test + ", " + std::to_string(measured.clients) +
               (measured.clients == 1 ? " connection" : " connections");
  if (measured.pipeline > 1) title += ", pipeline " + std::to_string(measured.pipeline);
  return title;
}

}  // namespace weir::benchmark

#include "rpc/pool/pool_stats.hpp"

#include "rpc/latency_text.hpp"

namespace weir::rpc {
namespace {

using MetricType = metrics::PrometheusText::Type;

struct PoolMetric {
  std::string_view name, help;
  std::uint64_t PoolStats::* value;
};
constexpr PoolMetric pool_metrics[] = {
    {"weir_rpc_pool_calls_total", "Calls that ended.", &PoolStats::calls},
    {"weir_rpc_pool_failures_total", "Calls that ended with an error.", &PoolStats::failures},
    {"weir_rpc_pool_retries_total", "Attempts after one that failed.", &PoolStats::retries},
    {"weir_rpc_pool_retries_refused_total", "Calls not made again for want of budget.",
     &PoolStats::retries_refused},
    {"weir_rpc_pool_hedges_total", "Calls made at one more server since the first was slow.",
     &PoolStats::hedges},
    {"weir_rpc_pool_hedges_won_total", "Hedges that were answered first.", &PoolStats::hedges_won},
    {"weir_rpc_pool_hedges_refused_total", "Hedges not made for want of tokens.", &PoolStats::hedges_refused},
    {"weir_rpc_pool_ejections_total", "Servers that got no calls for a while since too many failed.",
     &PoolStats::ejections},
};

struct ServerMetric {
  std::string_view name;
  MetricType type;
  std::string_view help;
  std::uint64_t (*value)(const PooledServer&);
};
constexpr ServerMetric server_metrics[] = {
    {"weir_rpc_pool_server_connections", MetricType::gauge, "Open connections to a server.",
     [](const PooledServer& one) -> std::uint64_t { return one.connections; }},
    {"weir_rpc_pool_server_in_flight", MetricType::gauge, "Calls under way at a server.",
     [](const PooledServer& one) -> std::uint64_t { return one.in_flight; }},
    {"weir_rpc_pool_server_calls_total", MetricType::counter, "Attempts that were sent to a server.",
     [](const PooledServer& one) { return one.calls; }},
    {"weir_rpc_pool_server_failed_calls_total", MetricType::counter,
     "Attempts that ended in a way that counts against a server.",
     [](const PooledServer& one) { return one.failed_calls; }},
    {"weir_rpc_pool_server_ejected", MetricType::gauge,
     "1 while a server gets no calls since too many failed.",
     [](const PooledServer& one) -> std::uint64_t { return one.ejected ? 1 : 0; }},
    {"weir_rpc_pool_server_down", MetricType::gauge,
     "1 while a server cannot be connected to, or answers no ping.",
     [](const PooledServer& one) -> std::uint64_t { return one.failures > 0 ? 1 : 0; }},
};

}  // namespace

std::string prometheus_text(std::string_view pool, const PoolStats& stats,
                            const std::vector<PooledServer>& servers) {
  metrics::PrometheusText text;
  const metrics::Labels labels("pool", pool);
  for (const PoolMetric& metric : pool_metrics) {
    text.metric(metric.name, MetricType::counter, metric.help);
    text.sample(stats.*metric.value, labels);
  }
  for (const ServerMetric& metric : server_metrics) {
    text.metric(metric.name, metric.type, metric.help);
    for (const PooledServer& one : servers)
      text.sample(metric.value(one), metrics::Labels(labels).add("server", one.address));
  }
  text.metric("weir_rpc_pool_latency_seconds", MetricType::histogram,
              "Time from a call's beginning to its end, with all its attempts.");
  write_latency(text, labels, stats.latency.counts(), stats.latency.total_ns());
  return text.take();
}

}  // namespace weir::rpc

#include "kv/server/metrics_page.hpp"

#include <absl/container/flat_hash_map.h>

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "kv/commands/info.hpp"
#include "kv/server/server.hpp"
#include "kv/text/number.hpp"
#include "metrics/page_server.hpp"
#include "metrics/prometheus.hpp"

namespace weir::kv {
namespace {

using metrics::Labels;
using metrics::PrometheusText;
using Type = PrometheusText::Type;

// A field of INFO: its value is a number or a word; the word `one` counts as 1, any other as 0.
struct ShownField {
  std::string_view info;
  std::string_view metric;
  Type type;
  std::string_view help;
  std::string_view one{};
};

constexpr ShownField shown_fields[] = {
    {"uptime_in_seconds", "redis_uptime_in_seconds", Type::gauge, "Seconds since the server began."},
    {"connected_clients", "redis_connected_clients", Type::gauge, "Clients, replicas apart."},
    {"maxclients", "redis_config_maxclients", Type::gauge, "How many clients it takes."},
    {"blocked_clients", "redis_blocked_clients", Type::gauge, "Clients that wait in a blocking command."},
    {"tracking_clients", "redis_tracking_clients", Type::gauge, "Clients whose reads are tracked."},
    {"pubsub_clients", "redis_pubsub_clients", Type::gauge, "Clients that subscribe."},
    {"used_memory", "redis_memory_used_bytes", Type::gauge, "Memory that the server has allocated."},
    {"used_memory_rss", "redis_memory_used_rss_bytes", Type::gauge, "Memory that the kernel has given it."},
    {"used_memory_peak", "redis_memory_used_peak_bytes", Type::gauge, "The most that it ever allocated."},
    {"used_memory_overhead", "redis_memory_used_overhead_bytes", Type::gauge, "Of it, what is no data."},
    {"used_memory_startup", "redis_memory_used_startup_bytes", Type::gauge, "Of it, what it took at start."},
    {"used_memory_dataset", "redis_memory_used_dataset_bytes", Type::gauge, "Of it, data."},
    {"used_memory_lua", "redis_memory_used_lua_bytes", Type::gauge, "Of it, the scripts' engine."},
    {"total_system_memory", "redis_total_system_memory_bytes", Type::gauge, "Memory of the machine."},
    {"maxmemory", "redis_memory_max_bytes", Type::gauge, "maxmemory; 0: no limit."},
    {"mem_fragmentation_ratio", "redis_mem_fragmentation_ratio", Type::gauge,
     "Given by the kernel over allocated."},
    {"loading", "redis_loading_dump_file", Type::gauge, "1 while a snapshot or a log is being read."},
    {"rdb_changes_since_last_save", "redis_rdb_changes_since_last_save", Type::gauge,
     "Changes that no snapshot has."},
    {"rdb_bgsave_in_progress", "redis_rdb_bgsave_in_progress", Type::gauge,
     "1 while a snapshot is being written."},
    {"rdb_last_save_time", "redis_rdb_last_save_timestamp_seconds", Type::gauge,
     "When the last snapshot was whole."},
    {"rdb_last_bgsave_status", "redis_rdb_last_bgsave_status", Type::gauge, "1: the last snapshot succeeded.",
     "ok"},
    {"rdb_last_bgsave_time_sec", "redis_rdb_last_bgsave_duration_sec", Type::gauge, "How long it took."},
    {"rdb_current_bgsave_time_sec", "redis_rdb_current_bgsave_duration_sec", Type::gauge,
     "How long the one under way takes."},
    {"aof_enabled", "redis_aof_enabled", Type::gauge, "1: a log is kept."},
    {"aof_rewrite_in_progress", "redis_aof_rewrite_in_progress", Type::gauge,
     "1 while the log is rewritten."},
    {"aof_rewrite_scheduled", "redis_aof_rewrite_scheduled", Type::gauge, "1: it will be."},
    {"aof_last_rewrite_time_sec", "redis_aof_last_rewrite_duration_sec", Type::gauge,
     "How long the last rewrite took."},
    {"aof_current_rewrite_time_sec", "redis_aof_current_rewrite_duration_sec", Type::gauge,
     "How long the one under way takes."},
    {"aof_last_bgrewrite_status", "redis_aof_last_bgrewrite_status", Type::gauge,
     "1: the last rewrite succeeded.", "ok"},
    {"aof_last_write_status", "redis_aof_last_write_status", Type::gauge,
     "1: the last write to the log succeeded.", "ok"},
    {"aof_current_size", "redis_aof_current_size_bytes", Type::gauge, "Size of the log."},
    {"aof_base_size", "redis_aof_base_size_bytes", Type::gauge, "Its size after the last rewrite."},
    {"aof_delayed_fsync", "redis_aof_delayed_fsync", Type::gauge, "Writes that waited for the disk."},
    {"total_connections_received", "redis_connections_received_total", Type::counter, "Clients that came."},
    {"total_commands_processed", "redis_commands_processed_total", Type::counter, "Commands that ran."},
    {"total_net_input_bytes", "redis_net_input_bytes_total", Type::counter, "Bytes that clients sent."},
    {"total_net_output_bytes", "redis_net_output_bytes_total", Type::counter, "Bytes that they were sent."},
    {"rejected_connections", "redis_rejected_connections_total", Type::counter, "Clients over maxclients."},
    {"expired_keys", "redis_expired_keys_total", Type::counter, "Keys whose time was over."},
    {"evicted_keys", "redis_evicted_keys_total", Type::counter, "Keys that went for maxmemory."},
    {"evicted_clients", "redis_evicted_clients_total", Type::counter,
     "Clients closed for maxmemory-clients."},
    {"keyspace_hits", "redis_keyspace_hits_total", Type::counter, "Keys that were looked for and there."},
    {"keyspace_misses", "redis_keyspace_misses_total", Type::counter,
     "Keys that were looked for and not there."},
    {"pubsub_channels", "redis_pubsub_channels", Type::gauge, "Channels with subscribers."},
    {"pubsub_patterns", "redis_pubsub_patterns", Type::gauge, "Patterns with subscribers."},
    {"sync_full", "redis_replica_resyncs_full", Type::gauge, "Replicas that were sent everything."},
    {"sync_partial_ok", "redis_replica_partial_resync_accepted", Type::gauge,
     "Replicas that were sent what they missed."},
    {"sync_partial_err", "redis_replica_partial_resync_denied", Type::gauge,
     "Replicas that asked for that in vain."},
    {"total_error_replies", "redis_total_error_replies", Type::counter, "Errors that clients were answered."},
    {"connected_slaves", "redis_connected_slaves", Type::gauge, "Replicas."},
    {"master_repl_offset", "redis_master_repl_offset", Type::gauge,
     "Bytes of the replication stream so far."},
    {"master_link_status", "redis_master_link_up", Type::gauge, "As a replica: 1: its primary is connected.",
     "up"},
    {"master_last_io_seconds_ago", "redis_master_last_io_seconds_ago", Type::gauge,
     "When that one last sent something."},
    {"master_sync_in_progress", "redis_master_sync_in_progress", Type::gauge,
     "1 while everything comes from it."},
    {"slave_repl_offset", "redis_slave_repl_offset", Type::gauge, "Bytes of its stream that were applied."},
    {"repl_backlog_size", "redis_replication_backlog_bytes", Type::gauge, "How much of the stream is kept."},
    {"used_cpu_sys", "redis_cpu_sys_seconds_total", Type::counter, "Processor time in the kernel."},
    {"used_cpu_user", "redis_cpu_user_seconds_total", Type::counter, "Processor time outside it."},
    {"used_cpu_sys_children", "redis_cpu_sys_children_seconds_total", Type::counter,
     "The same of ended children, in the kernel."},
    {"used_cpu_user_children", "redis_cpu_user_children_seconds_total", Type::counter, "And outside it."},
    {"used_cpu_sys_main_thread", "redis_cpu_sys_main_thread_seconds_total", Type::counter,
     "Of the thread that serves, in the kernel."},
    {"used_cpu_user_main_thread", "redis_cpu_user_main_thread_seconds_total", Type::counter,
     "And outside it."},
    {"lazyfree_pending_objects", "redis_lazyfree_pending_objects", Type::gauge,
     "Values that are still to be freed."},
    {"rdma_connected_clients", "weir_server_rdma_connected_clients", Type::gauge,
     "Clients that came over RDMA."},
    {"rdma_refused_accesses", "weir_server_rdma_refused_accesses_total", Type::counter,
     "Tries of RDMA peers to reach memory that they have no right to."},
    {"gateway_nodes", "weir_server_gateway_nodes", Type::gauge,
     "As a gateway: nodes of the cluster that it knows."},
    {"gateway_slots_covered", "weir_server_gateway_slots_covered", Type::gauge, "Slots that some node has."},
    {"gateway_links", "weir_server_gateway_links", Type::gauge, "Connections to nodes."},
    {"gateway_waiting_requests", "weir_server_gateway_waiting_requests", Type::gauge,
     "Requests that wait for a node."},
    {"gateway_passed_on", "weir_server_gateway_passed_on_total", Type::counter,
     "Requests that went to nodes."},
    {"gateway_moved", "weir_server_gateway_moved_total", Type::counter, "MOVED that they answered."},
    {"gateway_asked", "weir_server_gateway_asked_total", Type::counter, "ASK that they answered."},
    {"gateway_broken_links", "weir_server_gateway_broken_links_total", Type::counter,
     "Connections to nodes that broke."},
};

// One part of a field with several values: "calls=3,usec=10".
struct ShownPart {
  std::string_view key;
  std::string_view metric;
  Type type;
  std::string_view help;
  double scale = 1;
};
// Fields whose names share a prefix; the rest of the name becomes a label.
struct ShownFamily {
  std::string_view prefix;
  std::string_view label;
  std::string_view label_prefix;
  std::span<const ShownPart> parts;
};

constexpr ShownPart parts_of_command[] = {
    {"calls", "redis_commands_total", Type::counter, "Calls of each command."},
    {"usec", "redis_commands_duration_seconds_total", Type::counter, "Seconds that they took.", 1e-6},
    {"rejected_calls", "redis_commands_rejected_calls_total", Type::counter,
     "Calls that were refused before they ran."},
    {"failed_calls", "redis_commands_failed_calls_total", Type::counter, "Calls that ended with an error."},
};
constexpr ShownPart parts_of_error[] = {
    {"count", "redis_errors_total", Type::counter, "Errors by their first word."}};
constexpr ShownPart parts_of_database[] = {
    {"keys", "redis_db_keys", Type::gauge, "Keys of each database."},
    {"expires", "redis_db_keys_expiring", Type::gauge, "Those of them whose time ends."},
    {"avg_ttl", "redis_db_avg_ttl_seconds", Type::gauge, "How long they have on average.", 1e-3},
};
constexpr ShownPart parts_of_drop[] = {{"", "weir_server_rdma_packets_dropped_total", Type::counter,
                                        "Packets from other hosts that reached no queue pair."}};
constexpr ShownFamily shown_families[] = {
    {"cmdstat_", "cmd", "", parts_of_command},
    {"errorstat_", "err", "", parts_of_error},
    {"db", "db", "db", parts_of_database},
    {"rdma_dropped_", "reason", "", parts_of_drop},
};

using InfoLines = std::vector<std::pair<std::string_view, std::string_view>>;

InfoLines info_lines(std::string_view info) {
  InfoLines lines;
  while (!info.empty()) {
    const std::size_t end = info.find("\r\n");
    const std::string_view line = info.substr(0, end);
    info = end == info.npos ? std::string_view() : info.substr(end + 2);
    const std::size_t colon = line.find(':');
    if (colon != line.npos) lines.emplace_back(line.substr(0, colon), line.substr(colon + 1));
  }
  return lines;
}

// The value of `key` in "KEY=VALUE,KEY=VALUE"; of no key: all of it.
std::optional<double> number_in(std::string_view value, std::string_view key) {
  if (key.empty()) return parse_double(value);
  while (!value.empty()) {
    const std::size_t end = value.find(',');
    const std::string_view part = value.substr(0, end);
    value = end == value.npos ? std::string_view() : value.substr(end + 1);
    const std::size_t equals = part.find('=');
    if (equals != part.npos && part.substr(0, equals) == key) return parse_double(part.substr(equals + 1));
  }
  return std::nullopt;
}

void write_fields(const InfoLines& lines, PrometheusText& text) {
  absl::flat_hash_map<std::string_view, std::string_view> by_name(lines.begin(), lines.end());
  for (const ShownField& field : shown_fields) {
    const auto found = by_name.find(field.info);
    if (found == by_name.end()) continue;
    const auto value = field.one.empty() ? parse_double(found->second)
                                         : std::optional(found->second == field.one ? 1.0 : 0.0);
    if (!value) continue;
    constexpr int whole_numbers = 17;  // exact up to 2^53
    text.metric(field.metric, field.type, field.help);
    text.sample(*value, {}, whole_numbers);
  }
}

// Returns the rest of the name if it belongs to the family: "db0" belongs to "db", "db_x" does not.
std::optional<std::string_view> name_within(const ShownFamily& family, std::string_view name) {
  if (!name.starts_with(family.prefix)) return std::nullopt;
  const std::string_view rest = name.substr(family.prefix.size());
  if (!family.label_prefix.empty() && !parse_int(rest)) return std::nullopt;
  return rest;
}

void write_families(const InfoLines& lines, PrometheusText& text) {
  for (const ShownFamily& family : shown_families) {
    for (const ShownPart& part : family.parts) {
      text.metric(part.metric, part.type, part.help);
      for (const auto& [name, value] : lines) {
        const auto rest = name_within(family, name);
        const auto number = rest ? number_in(value, part.key) : std::nullopt;
        if (number)
          text.sample(*number * part.scale,
                      Labels(family.label, std::string(family.label_prefix).append(*rest)), 15);
      }
    }
  }
}

void write_instance(const Server& server, const InfoLines& lines, PrometheusText& text) {
  const absl::flat_hash_map<std::string_view, std::string_view> by_name(lines.begin(), lines.end());
  Labels labels;
  for (const std::string_view name : {"role", "redis_version", "weir_version", "redis_mode", "os",
                                      "process_id", "tcp_port", "maxmemory_policy", "rdma_provider"})
    if (const auto found = by_name.find(name); found != by_name.end()) labels.add(name, found->second);
  text.metric("redis_instance_info", Type::gauge, "What this server is.");
  text.sample(1, labels);
  text.metric("redis_up", Type::gauge, "1: it answers.");
  text.sample(1);
  text.metric("redis_start_time_seconds", Type::gauge, "When it began.");
  text.sample(server.started_ms / 1000);
}

class MetricsListener final : public Listener {
 public:
  explicit MetricsListener(metrics::PageServer pages) : pages_(std::move(pages)) {}
  std::string where() const override { return "metrics " + pages_.where(); }
  std::uint16_t port() const override { return pages_.port(); }

 private:
  metrics::PageServer pages_;
};

}  // namespace

std::string metrics_page(const Server& server) {
  const std::string info = info_everything(server);
  const InfoLines lines = info_lines(info);
  PrometheusText text;
  write_instance(server, lines, text);
  write_fields(lines, text);
  write_families(lines, text);
  return text.take();
}

const std::string& MetricsPage::at(std::int64_t now_ms) {
  const std::int64_t age = now_ms - made_ms_;
  if (page_.empty() || age >= keep_ms || age < 0) {
    page_ = metrics_page(server_);
    made_ms_ = now_ms;
  }
  return page_;
}

OpenedListener listen_metrics(Server& server, const std::string& address, std::uint16_t port) {
  const auto serve = [&server, page = std::make_shared<MetricsPage>(server)] {
    server.refresh_time();
    return page->at(server.steady_ms);
  };
  auto pages = metrics::PageServer::listen(server.io, address == "*" ? "0.0.0.0" : address, port, serve);
  if (!pages) return std::unexpected("Could not serve metrics: it " + pages.error());
  return std::make_unique<MetricsListener>(std::move(*pages));
}

}  // namespace weir::kv

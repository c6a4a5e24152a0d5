// INFO: the state of the server as text, section by section, in Redis's field names.
#include "kv/commands/info.hpp"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "kv/aof/append_only.hpp"
#include "kv/call/call.hpp"
#include "kv/clients/client.hpp"
#include "kv/clients/client_pause.hpp"
#include "kv/clients/pubsub.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/memory_figures.hpp"
#include "kv/core/gateway.hpp"
#include "kv/core/memory.hpp"
#include "kv/endpoints/listeners.hpp"
#include "kv/endpoints/transports.hpp"
#include "kv/migration/migrations.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/replication/replication.hpp"
#include "kv/resp/words.hpp"
#include "kv/scripts/scripts.hpp"
#include "kv/text/heap.hpp"
#include "kv/text/number.hpp"
#include "rdma/packet_drops.hpp"

namespace weir::kv {

namespace {

// Appends lines to one section.
class Fields {
 public:
  explicit Fields(std::string& text) : text_(text) {}
  void operator()(std::string_view name, std::string_view value) {
    text_ += name;
    text_ += ':';
    text_ += value;
    text_ += "\r\n";
  }
  void operator()(std::string_view name, const char* value) { (*this)(name, std::string_view(value)); }
  template <std::integral Number>
  void operator()(std::string_view name, Number value) {
    (*this)(name, std::to_string(value));
  }
  void number(std::string_view name, double value) {
    std::array<char, 64> text;
    const int n = std::snprintf(text.data(), text.size(), "%.2f", value);
    (*this)(name, std::string_view(text.data(), static_cast<std::size_t>(n)));
  }
  void percent(std::string_view name, double value) {
    std::array<char, 64> text;
    const int n = std::snprintf(text.data(), text.size(), "%.2f%%", value * 100);
    (*this)(name, std::string_view(text.data(), static_cast<std::size_t>(n)));
  }
  void bytes(std::string_view name, std::size_t value) {
    (*this)(name, value);
    std::array<char, 64> human;
    const auto v = static_cast<double>(value);
    const int n = value < 1024           ? std::snprintf(human.data(), human.size(), "%zuB", value)
                  : value < (1u << 20)   ? std::snprintf(human.data(), human.size(), "%.2fK", v / 1024)
                  : value < (1ull << 30) ? std::snprintf(human.data(), human.size(), "%.2fM", v / (1 << 20))
                                         : std::snprintf(human.data(), human.size(), "%.2fG", v / (1 << 30));
    (*this)(std::string(name) + "_human", std::string_view(human.data(), static_cast<std::size_t>(n)));
  }

 private:
  std::string& text_;
};

void server_section(const ServerParts& server, Fields& field) {
  utsname system{};
  uname(&system);
  const std::int64_t uptime_s = (server.steady_ms - server.started_ms) / 1000;
  field("redis_version", WEIR_REDIS_VERSION);
  field("weir_version", WEIR_VERSION);
  field("redis_git_sha1", "00000000");
  field("redis_git_dirty", 0);
  field("redis_mode", "standalone");
  field("os", std::string(system.sysname) + ' ' + system.release + ' ' + system.machine);
  field("arch_bits", 64);
  field("multiplexing_api", "epoll");
  field("gcc_version", __VERSION__);
  field("process_id", getpid());
  field("run_id", server.run_id);
  field("tcp_port", server.listeners.port_of_type("tcp"));
  field("server_time_usec", server.now_us);
  field("uptime_in_seconds", uptime_s);
  field("uptime_in_days", uptime_s / 86400);
  field("hz", server.settings.hz);
  field("executable", server.surroundings.executable);
  field("config_file", server.surroundings.config_file);
  field("io_threads_active", 0);
  if (const repl::Shutdown& shutdown = server.replication->shutdown(); shutdown.waits())
    field("shutdown_in_milliseconds", shutdown.left_ms());
}

void clients_section(const ServerParts& server, Fields& field) {
  std::size_t most_in = 0;
  std::size_t most_out = 0;
  std::size_t subscribed = 0;
  std::size_t paused = 0;
  std::size_t waiting_at_nodes = 0;
  for (const auto& [id, client] : server.clients) {
    most_in = std::max(most_in, client->input().bytes());
    most_out = std::max(most_out, client->output.size());
    subscribed += client->subscriptions.any() ? 1 : 0;
    paused += client->paused() ? 1 : 0;
    waiting_at_nodes += server.gateway != nullptr && server.gateway->blocks(*client) ? 1 : 0;
  }
  field("connected_clients", server.clients.size() - server.replication->replicas().size());
  field("cluster_connections", 0);
  field("maxclients", server.settings.maxclients);
  field("client_recent_max_input_buffer", most_in);
  field("client_recent_max_output_buffer", most_out);
  field("blocked_clients", server.blocking.size() + paused + waiting_at_nodes);
  field("tracking_clients", server.tracking.clients());
  field("clients_in_timeout_table", 0);
  field("pubsub_clients", subscribed);
  const ClientPause& pause = server.client_pause();
  const std::string_view reason = pause.until_ms() != 0                       ? "client_pause"
                                  : pause.holds_writes_for(HeldFor::shutdown) ? "shutdown_in_progress"
                                  : pause.holds_writes_for(HeldFor::failover) ? "failover_in_progress"
                                                                              : "none";
  const Paused what = pause.what();
  field("paused_reason", reason);
  field("paused_actions", what == Paused::nothing ? "none" : what == Paused::writes ? "write" : "all");
  field("paused_timeout_milliseconds", std::max<std::int64_t>(0, pause.until_ms() - server.steady_ms));
}

void memory_section(const ServerParts& server, Fields& field) {
  const std::size_t used = used_memory();
  const std::size_t resident = resident_memory();
  field.bytes("used_memory", used);
  field.bytes("used_memory_rss", resident);
  const std::size_t peak = server.heap_marks.peak();
  field.bytes("used_memory_peak", peak);
  field.percent("used_memory_peak_perc", static_cast<double>(used) / static_cast<double>(peak));
  const MemoryFigures figures(server);
  field("used_memory_overhead", figures.overhead());
  field("used_memory_startup", server.heap_marks.at_start);
  field("used_memory_dataset", figures.data());
  field.percent("used_memory_dataset_perc", static_cast<double>(figures.data()) / static_cast<double>(used));
  field("allocator_allocated", used);
  field("allocator_active", resident);
  field("allocator_resident", resident);
  field("used_memory_vm_eval", server.scripts->memory());
  field.bytes("used_memory_lua", server.scripts->memory());
  field("used_memory_scripts_eval", server.scripts->cache().text_bytes());
  field("used_memory_vm_functions", server.scripts->libraries().text_bytes());
  field("number_of_cached_scripts", server.scripts->cache().size());
  field.bytes("total_system_memory", system_memory());
  field.bytes("maxmemory", static_cast<std::size_t>(server.settings.maxmemory));
  field("maxmemory_policy", setting_text(server.settings, *find_setting("maxmemory-policy")));
  field.number("mem_fragmentation_ratio", static_cast<double>(resident) / static_cast<double>(used));
  field("mem_fragmentation_bytes", figures.unused());
  field("mem_not_counted_for_evict", figures.uncounted.all());
  field("mem_replication_backlog", figures.history);
  field("mem_total_replication_buffers", figures.history + figures.replicas);
  field("mem_snapshot_pending", figures.uncounted.snapshot + figures.uncounted.log_rewrite);
  field("mem_clients_slaves", figures.replicas);
  field("mem_clients_normal", figures.clients);
  field("mem_aof_buffer", figures.uncounted.log);
  field("mem_allocator", allocator_name());
  field("active_defrag_running", 0);
  field("lazyfree_pending_objects", server.lazy_free.size());
  field("lazyfreed_objects", server.lazy_free.freed());
}

void loading_fields(const ServerParts& server, Fields& field) {
  const LoadProgress& progress = *server.loading;
  const auto done = static_cast<double>(progress.bytes_done);
  const auto all = static_cast<double>(progress.bytes_all);
  const std::int64_t elapsed_s = (server.steady_ms - progress.began_ms) / 1000;
  field("loading_start_time", progress.began_ms / 1000);
  field("loading_total_bytes", progress.bytes_all);
  field("loading_loaded_bytes", progress.bytes_done);
  field.number("loading_loaded_perc", all == 0 ? 100 : done * 100 / all);
  field("loading_eta_seconds",
        done == 0 ? -1 : static_cast<std::int64_t>(static_cast<double>(elapsed_s) * (all - done) / done));
}

void persistence_section(const ServerParts& server, Fields& field) {
  const Snapshots& snapshots = *server.snapshots;
  const Snapshots::State& state = snapshots.state();
  const Snapshot* const current = snapshots.current();
  field("loading", server.loading ? 1 : 0);
  field("async_loading", 0);
  field("current_save_keys_processed", current == nullptr ? 0 : current->keys_done());
  field("current_save_keys_total", current == nullptr ? 0 : current->keys_at_first());
  field("rdb_changes_since_last_save", snapshots.changes_since());
  field("rdb_bgsave_in_progress", snapshots.running() ? 1 : 0);
  field("rdb_last_save_time", state.last_save_s);  // 0: nothing was ever saved
  field("rdb_last_bgsave_status", state.last_ok ? "ok" : "err");
  field("rdb_last_bgsave_time_sec", state.last_duration_s);
  field("rdb_current_bgsave_time_sec", snapshots.running_for_s());
  field("rdb_saves", state.saves);
  field("rdb_last_load_keys_expired", server.loaded.expired);
  field("rdb_last_load_keys_loaded", server.loaded.keys);
  const aof::AppendOnly& log = *server.append_only;
  const aof::AppendOnly::State& log_state = log.state();
  field("aof_enabled", log.on() ? 1 : 0);
  field("aof_rewrite_in_progress", log.rewriting() ? 1 : 0);
  field("aof_rewrite_scheduled", log.rewrite_scheduled() ? 1 : 0);
  field("aof_last_rewrite_time_sec", log_state.last_took_s);
  field("aof_current_rewrite_time_sec", log.rewriting_for_s());
  field("aof_last_bgrewrite_status", log_state.last_ok ? "ok" : "err");
  field("aof_rewrites", log_state.rewrites);
  field("aof_last_write_status", log.refusal().empty() ? "ok" : "err");
  if (log.on()) {
    field("aof_current_size", log.size());
    field("aof_base_size", log.size_after_rewrite());
    field("aof_pending_rewrite", 0);
    field("aof_buffer_length", log.writer().gathered_bytes());
    field("aof_pending_bio_fsync", log.writer().syncs() ? 1 : 0);
    field("aof_delayed_fsync", log.writer().delayed_writes());
  }
  if (server.loading) loading_fields(server, field);
}

void stats_section(const ServerParts& server, Fields& field) {
  const Stats& stats = server.stats;
  field("total_connections_received", stats.connections);
  field("total_commands_processed", stats.commands);
  const std::int64_t now_ms = server.steady_ms;
  field("instantaneous_ops_per_sec",
        static_cast<std::uint64_t>(server.rates.commands.at(now_ms, stats.commands)));
  field("total_net_input_bytes", stats.bytes_in);
  field("total_net_output_bytes", stats.bytes_out);
  field.number("instantaneous_input_kbps", server.rates.input.at(now_ms, stats.bytes_in) / 1024);
  field.number("instantaneous_output_kbps", server.rates.output.at(now_ms, stats.bytes_out) / 1024);
  field("rejected_connections", stats.rejected);
  std::uint64_t own_volatile = 0;
  for (const auto& db : server.databases) own_volatile += db->own_volatile_size();
  field("slave_expires_tracked_keys", own_volatile);
  field("expired_keys", stats.expired);
  field("expired_subkeys", stats.expired_fields);
  field("expired_fields", stats.expired_fields);  // Valkey's name
  field("evicted_keys", stats.evicted);
  field("evicted_clients", stats.evicted_clients);
  field("keyspace_hits", stats.hits);
  field("keyspace_misses", stats.misses);
  field("pubsub_channels", server.pubsub.topics(PubSub::Kind::channel).size());
  field("pubsub_patterns", server.pubsub.topics(PubSub::Kind::pattern).size());
  field("pubsubshard_channels", server.pubsub.topics(PubSub::Kind::shard).size());
  field("migrate_cached_sockets", server.migrations->kept_links());
  field("tracking_total_keys", server.tracking.keys());
  field("tracking_total_items", server.tracking.items());
  field("tracking_total_prefixes", server.tracking.prefixes());
  const repl::Replicas& replicas = server.replication->replicas();
  field("sync_full", replicas.full_syncs());
  field("sync_partial_ok", replicas.partial_syncs());
  field("sync_partial_err", replicas.refused_partial_syncs());
  field("total_error_replies", stats.error_replies);
}

void replication_section(const ServerParts& server, Fields& field) {
  for (const auto& [name, value] : server.replication->facts()) field(name, value);
}

void cpu_section(const ServerParts&, Fields& field) {
  auto seconds = [](const timeval& t) {
    std::array<char, 48> text;
    const int n = std::snprintf(text.data(), text.size(), "%ld.%06ld", static_cast<long>(t.tv_sec),
                                static_cast<long>(t.tv_usec));
    return std::string(text.data(), static_cast<std::size_t>(n));
  };
  const auto used = [](auto who) {
    rusage usage{};
    getrusage(who, &usage);
    return usage;
  };
  const rusage all = used(RUSAGE_SELF);
  field("used_cpu_sys", seconds(all.ru_stime));
  field("used_cpu_user", seconds(all.ru_utime));
  const rusage children = used(RUSAGE_CHILDREN);
  field("used_cpu_sys_children", seconds(children.ru_stime));
  field("used_cpu_user_children", seconds(children.ru_utime));
  const rusage main = used(RUSAGE_THREAD);
  field("used_cpu_sys_main_thread", seconds(main.ru_stime));
  field("used_cpu_user_main_thread", seconds(main.ru_utime));
  timeval active{};
  timeradd(&main.ru_stime, &main.ru_utime, &active);
  field("used_active_time_main_thread", seconds(active));
}

void commandstats_section(const ServerParts& server, Fields& field) {
  const double per_us = server.cycle_rate.per_us();
  for (const auto& [command, calls] : server.stats.by_command) {
    const double us = static_cast<double>(calls.cycles) / per_us;
    std::array<char, 200> text;
    const int n = std::snprintf(text.data(), text.size(),
                                "calls=%lu,usec=%.0f,usec_per_call=%.2f,rejected_calls=%lu,failed_calls=%lu",
                                calls.calls, us, calls.calls == 0 ? 0 : us / static_cast<double>(calls.calls),
                                calls.rejected, calls.failed);
    field("cmdstat_" + command->full_name(), std::string_view(text.data(), static_cast<std::size_t>(n)));
  }
}

void errorstats_section(const ServerParts& server, Fields& field) {
  for (const auto& [code, count] : server.stats.by_error)
    field("errorstat_" + code, "count=" + std::to_string(count));
}

void latencystats_section(const ServerParts& server, Fields& field) {
  if (!server.settings.latency_tracking) return;
  const double per_us = server.cycle_rate.per_us();
  const auto percentiles = split_words(server.settings.latency_percentiles);
  for (const auto& [command, calls] : server.stats.by_command) {
    if (calls.latency.count() == 0) continue;
    std::string text;
    for (const std::string& percent : *percentiles) {
      const std::uint64_t cycles = calls.latency.percentile_cycles(*parse_double(percent));
      std::array<char, 48> us;
      const int n = std::snprintf(us.data(), us.size(), "=%.3f", static_cast<double>(cycles) / per_us);
      text.append(text.empty() ? "p" : ",p").append(percent);
      text.append(us.data(), static_cast<std::size_t>(n));
    }
    field("latency_percentiles_usec_" + command->full_name(), text);
  }
}

void cluster_section(const ServerParts&, Fields& field) { field("cluster_enabled", 0); }

void keyspace_section(const ServerParts& server, Fields& field) {
  for (const auto& db : server.databases) {
    if (db->size() == 0) continue;
    field("db" + std::to_string(db->index()),
          "keys=" + std::to_string(db->size()) + ",expires=" + std::to_string(db->volatile_size()) +
              ",avg_ttl=" + std::to_string(db->average_ttl_ms(server.now_ms)) +
              ",subexpiry=" + std::to_string(db->hashes_with_times()) +
              ",keys_with_volatile_items=" + std::to_string(db->hashes_with_times()));  // Valkey's name
  }
}

void rdma_section(const ServerParts& server, Fields& field) {
  std::size_t clients = 0;
  for (const auto& [id, client] : server.clients)
    clients += client->connection().kind().starts_with("rdma") ? 1 : 0;
  field("rdma_enabled",
        server.listeners.port_of_type("rdma") != 0 || server.listeners.port_of_type("rdma+tls") != 0 ? 1 : 0);
  field("rdma_port", server.listeners.port_of_type("rdma"));
  field("rdma_tls_port", server.listeners.port_of_type("rdma+tls"));
  field("rdma_provider",
        server.transports.rdma_provider().empty() ? "none" : server.transports.rdma_provider());
  field("rdma_rx_size", server.settings.rdma_rx_size);
  field("rdma_completion_vector", server.settings.rdma_comp_vector);
  field("rdma_connected_clients", clients);
  field("rdma_refused_accesses", server.transports.rdma_refused_accesses());
  for (const auto& [reason, packets] : rdma::packet_drops())
    field("rdma_dropped_" + std::string(reason), packets);
}

void gateway_section(const ServerParts& server, Fields& field) {
  field("gateway_enabled", server.gateway != nullptr ? 1 : 0);
  if (server.gateway == nullptr) return;
  const cluster::GatewayFacts facts = server.gateway->facts();
  field("gateway_seed", facts.seed);
  field("gateway_nodes", facts.nodes);
  field("gateway_slots_covered", facts.slots_covered);
  field("gateway_links", facts.links);
  field("gateway_own_links", facts.own_links);
  field("gateway_own_links_idle", facts.idle_own_links);
  field("gateway_topics", facts.topics);
  field("gateway_waiting_requests", facts.waiting);
  field("gateway_held_clients", facts.held_clients);
  field("gateway_passed_on", facts.passed_on);
  field("gateway_moved", facts.moved);
  field("gateway_asked", facts.asked);
  field("gateway_map_reads", facts.map_reads);
  field("gateway_map_failures", facts.map_failures);
  field("gateway_broken_links", facts.broken_links);
}

struct Section {
  std::string_view name;
  std::string_view title;
  bool by_default;
  void (*write)(const ServerParts&, Fields&);
};
constexpr Section sections[] = {
    {"server", "Server", true, server_section},
    {"clients", "Clients", true, clients_section},
    {"memory", "Memory", true, memory_section},
    {"persistence", "Persistence", true, persistence_section},
    {"stats", "Stats", true, stats_section},
    {"replication", "Replication", true, replication_section},
    {"cpu", "CPU", true, cpu_section},
    {"modules", "Modules", true, [](const ServerParts&, Fields&) {}},
    {"commandstats", "Commandstats", false, commandstats_section},
    {"errorstats", "Errorstats", true, errorstats_section},
    {"latencystats", "Latencystats", false, latencystats_section},
    {"cluster", "Cluster", true, cluster_section},
    {"gateway", "Gateway", false, gateway_section},
    {"rdma", "RDMA", true, rdma_section},
    {"keyspace", "Keyspace", true, keyspace_section},
};

template <class Wanted>
std::string text_of_sections(const ServerParts& server, Wanted wanted) {
  std::string text;
  for (const Section& section : sections) {
    if (!wanted(section)) continue;
    if (!text.empty()) text += "\r\n";
    text += "# " + std::string(section.title) + "\r\n";
    Fields fields(text);
    section.write(server, fields);
  }
  return text;
}

void info(const Call& call) {
  auto wanted = [&](const Section& section) {
    if (call.count() == 1) return section.by_default;
    return std::ranges::any_of(call.arguments.subspan(1), [&](const Argument& word) {
      return is_word(word.text, section.name) || is_word(word.text, "all") ||
             is_word(word.text, "everything") || (section.by_default && is_word(word.text, "default"));
    });
  };
  call.reply.verbatim("txt", text_of_sections(call.server, wanted));
}

}  // namespace

std::string info_everything(const ServerParts& server) {
  return text_of_sections(server, [](const Section&) { return true; });
}

std::span<const Command> info_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"info", -1, loading | stale, 0, 0, 0, info, "server", "Returns facts about the server."},
  };
  return commands;
}

}  // namespace weir::kv

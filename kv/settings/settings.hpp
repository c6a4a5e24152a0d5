// All settings with their defaults, and the table that names them for redis.conf, the command
// line and CONFIG GET/SET.
//
// A setting has the same text form in all three places. The table is data: a name, where the value is stored,
// its valid values, and whether it may change while the server runs.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kv/rdb/format.hpp"
#include "kv/settings/save_points.hpp"
#include "kv/settings/setting_spec.hpp"

namespace weir::kv {

enum class EvictionPolicy : int {
  volatile_lru,
  volatile_lfu,
  volatile_random,
  volatile_ttl,
  allkeys_lru,
  allkeys_lfu,
  allkeys_random,
  noeviction
};

constexpr bool counts_frequency(EvictionPolicy policy) {
  return policy == EvictionPolicy::volatile_lfu || policy == EvictionPolicy::allkeys_lfu;
}
// Whether the policy needs the time or the frequency of a key's use.
constexpr bool notes_use(EvictionPolicy policy) {
  return counts_frequency(policy) || policy == EvictionPolicy::volatile_lru ||
         policy == EvictionPolicy::allkeys_lru;
}

// Limits on the unsent output of one client; 0: no limit.
struct OutputLimit {
  std::int64_t hard_bytes = 0;
  std::int64_t soft_bytes = 0;
  std::int64_t soft_s = 0;
};

// As a port: the system chooses one.
inline constexpr std::int64_t any_port = -1;

struct Settings {
  // Where it listens. Port 0: nowhere; any_port: a free port.
  std::int64_t port = 6379;
  std::string bind = "* -::*";
  std::int64_t tcp_backlog = 511;
  std::int64_t tcp_keepalive_s = 300;
  std::string unixsocket;
  std::int64_t unixsocketperm = 0;
  std::int64_t tls_port = 0;
  std::string tls_cert_file, tls_key_file, tls_key_file_pass, tls_ca_cert_file, tls_ca_cert_dir;
  std::string tls_client_cert_file, tls_client_key_file, tls_client_key_file_pass;
  int tls_auth_clients = 1;  // no, yes, optional
  std::int64_t tls_handshake_timeout_s = 10;
  std::int64_t rdma_port = 0;
  std::string rdma_bind;
  std::int64_t rdma_rx_size = 1024 * 1024;
  std::int64_t rdma_comp_vector = -1;
  std::int64_t rdma_tls_port = 0;
  int rdma_provider = 0;  // auto, weir, system
  bool rdma_required = true;
  std::int64_t idle_spin_us = 50;
  std::int64_t metrics_port = 0;
  std::string metrics_bind = "127.0.0.1 -::1";
  // Clients.
  bool protected_mode = true;
  std::string requirepass;
  std::string aclfile;
  int acl_pubsub_default = 1;  // allchannels, resetchannels
  std::int64_t acllog_max_len = 128;
  std::vector<std::vector<std::string>> users;  // from `user` lines: the name, then the rules
  std::int64_t maxclients = 10000;
  std::int64_t timeout_s = 0;
  std::int64_t auth_timeout_s = 60;
  std::int64_t proto_max_bulk_len = 512LL * 1024 * 1024;
  std::int64_t client_query_buffer_limit = 1024LL * 1024 * 1024;
  OutputLimit normal_output{}, replica_output{256LL << 20, 64LL << 20, 60},
      pubsub_output{32LL << 20, 8LL << 20, 60};
  // Data.
  std::int64_t databases = 16;
  std::int64_t maxmemory = 0;
  std::int64_t maxmemory_clients = 0;  // negative: percent of maxmemory
  int maxmemory_policy = static_cast<int>(EvictionPolicy::noeviction);
  std::int64_t maxmemory_samples = 5;
  std::int64_t lfu_log_factor = 10, lfu_decay_time_min = 1;
  std::int64_t hash_max_listpack_entries = 512, hash_max_listpack_value = 64;
  std::int64_t zset_max_listpack_entries = 128, zset_max_listpack_value = 64;
  std::int64_t set_max_intset_entries = 512;
  std::int64_t set_max_listpack_entries = 128, set_max_listpack_value = 64;
  std::int64_t stream_node_max_bytes = 4096, stream_node_max_entries = 100;
  std::int64_t hll_sparse_max_bytes = 3000;
  std::int64_t list_max_listpack_size = -2, list_compress_depth = 0;
  // Scripts.
  std::int64_t busy_reply_threshold_ms = 5000;
  std::int64_t lua_memory_limit = 256LL << 20;
  // The process.
  std::int64_t hz = 10;
  std::int64_t slowlog_log_slower_than_us = 10000, slowlog_max_len = 128;
  std::int64_t commandlog_request_larger_than = 1 << 20, commandlog_large_request_max_len = 128;
  std::int64_t commandlog_reply_larger_than = 1 << 20, commandlog_large_reply_max_len = 128;
  std::int64_t latency_monitor_threshold_ms = 0;
  bool latency_tracking = true;
  // Whether replicas and the log are told UNLINK for such keys instead of DEL; see deletion_word.hpp.
  bool lazyfree_lazy_eviction = false, lazyfree_lazy_expire = false, lazyfree_lazy_server_del = false;
  std::string availability_zone;  // HELLO answers it, so that clients prefer servers near them
  std::string notify_keyspace_events;
  std::int64_t tracking_table_max_keys = 1000000;
  std::string latency_percentiles = "50 99 99.9";
  std::string logfile, pidfile, dir = ".";
  int loglevel = 2;  // debug, verbose, notice, warning
  bool daemonize = false;
  std::string server_cpulist;            // empty: the system chooses
  std::string bio_cpulist;               // for the threads that write and sync files; empty: the same
  std::int64_t shutdown_timeout_s = 10;  // 0: does not wait for replicas
  int enable_debug_command = 0;          // no, yes, local
  // Snapshots.
  std::string save;  // save points in the form that read_save_points() reads
  bool save_given = false;
  std::string dbfilename = "dump.rdb";
  int rdb_dialect = 0;  // of snapshots in files and of DUMP
  rdb::Dialect dialect() const { return rdb_dialect == 1 ? rdb::Dialect::valkey : rdb::Dialect::redis; }
  std::int64_t rdb_key_save_delay_us = 0;
  bool rdbcompression = true, rdbchecksum = true, stop_writes_on_bgsave_error = true;
  int protected_configs = 0;  // changeable at run time: no, yes, local
  // Replicas of this server.
  std::int64_t repl_backlog_size = 1 << 20, repl_backlog_ttl_s = 3600;
  std::int64_t repl_timeout_s = 60, repl_ping_replica_period_s = 10;
  std::int64_t min_replicas_to_write = 0,
               min_replicas_max_lag_s = 10;  // 0 in either: changes need no replica
  // The log of changes.
  bool appendonly = false;
  int appendfsync = 1;  // always, everysec, no
  std::string appendfilename = "appendonly.aof", appenddirname = "appendonlydir";
  bool aof_load_truncated = true;
  std::int64_t auto_aof_rewrite_percentage = 100, auto_aof_rewrite_min_size = 64LL << 20;
  // The primary that it follows: "HOST PORT"; empty: none.
  std::string replicaof;
  std::string masteruser, masterauth;
  bool tls_replication = false, rdma_replication = false;
  bool replica_read_only = true, replica_serve_stale_data = true, replica_announced = true;
  std::int64_t replica_priority = 100, replica_announce_port = 0;
  std::string replica_announce_ip;
  // The cluster that it forwards to: "HOST:PORT" of a node; empty: it keeps the data itself.
  std::string cluster_gateway;
  std::int64_t cluster_gateway_timeout_ms = 5000;
  std::int64_t cluster_gateway_own_links = 1000;
  std::int64_t cluster_gateway_own_links_per_user = 0;  // 0: as many as there are
  bool tls_cluster = false;
  std::map<std::string_view, std::string> idle;     // see idle_settings.hpp: those given, by name
  std::set<std::string_view> given_without_effect;  // names, for the log
};

std::span<const SettingSpec> setting_specs();
const SettingSpec* find_setting(std::string_view name);  // either name, any case

// The error is Redis's reason without its prefix: "argument must be 'yes' or 'no'".
std::expected<void, std::string> assign_setting(Settings& settings, const SettingSpec& spec,
                                                std::span<const std::string> words);
std::string setting_text(const Settings& settings, const SettingSpec& spec);

}  // namespace weir::kv

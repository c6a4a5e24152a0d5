#include "kv/settings/settings.hpp"

#include <strings.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "kv/counting/latency_histogram.hpp"
#include "kv/resp/words.hpp"
#include "kv/settings/idle_settings.hpp"
#include "kv/settings/setting_lines.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

using namespace std::string_view_literals;

constexpr std::array policies{"volatile-lru"sv, "volatile-lfu"sv, "volatile-random"sv, "volatile-ttl"sv,
                              "allkeys-lru"sv,  "allkeys-lfu"sv,  "allkeys-random"sv,  "noeviction"sv};
constexpr std::array auth_clients{"no"sv, "yes"sv, "optional"sv};
constexpr std::array new_users_channels{"allchannels"sv, "resetchannels"sv};
constexpr std::array providers{"auto"sv, "weir"sv, "system"sv};
constexpr std::array permissions{"no"sv, "yes"sv, "local"sv};
constexpr std::array fsyncs{"always"sv, "everysec"sv, "no"sv};
constexpr std::array dialects{"redis"sv, "valkey"sv};
constexpr std::array levels{"debug"sv, "verbose"sv, "notice"sv, "warning"sv};
constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t int_limit = std::numeric_limits<int>::max();

using S = Settings;
constexpr Change start = Change::at_start;
constexpr Change run = Change::any_time;
constexpr Change guarded = Change::at_start_for_safety;
constexpr bool without_effect = true;

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

using Outcome = std::expected<void, std::string>;

const std::array specs{
    SettingSpec{"port",
                IntegerSetting{&S::port, any_port, 65535},
                run,
                {},
                "TCP port; 0 turns TCP off, -1 picks a free one (6379)"},
    SettingSpec{
        "bind", WordsSetting{&S::bind}, run, {}, "addresses to listen on; -ADDR is optional (* -::*)"},
    SettingSpec{"tcp-backlog", IntegerSetting{&S::tcp_backlog, 0, int_limit}, start},
    SettingSpec{"tcp-keepalive", IntegerSetting{&S::tcp_keepalive_s, 0, int_limit}},
    SettingSpec{
        "unixsocket", TextSetting{&S::unixsocket}, start, {}, "path of a unix socket to listen on, too"},
    SettingSpec{"unixsocketperm",
                IntegerSetting{&S::unixsocketperm, 0, 0777, Unit::octal},
                start,
                {},
                "permissions of that socket, octal; 0 follows the umask (0)"},
    SettingSpec{
        "tls-port", IntegerSetting{&S::tls_port, any_port, 65535}, run, {}, "TLS port; 0 turns TLS off (0)"},
    SettingSpec{"tls-cert-file", TextSetting{&S::tls_cert_file}, run, {}, "the server's certificate, PEM"},
    SettingSpec{"tls-key-file", TextSetting{&S::tls_key_file}, run, {}, "its private key, PEM"},
    SettingSpec{"tls-key-file-pass", TextSetting{&S::tls_key_file_pass}, run},
    SettingSpec{"tls-ca-cert-file",
                TextSetting{&S::tls_ca_cert_file},
                run,
                {},
                "authorities that sign clients' certificates, PEM"},
    SettingSpec{"tls-ca-cert-dir", TextSetting{&S::tls_ca_cert_dir}, run},
    SettingSpec{"tls-client-cert-file", TextSetting{&S::tls_client_cert_file}, run},
    SettingSpec{"tls-client-key-file", TextSetting{&S::tls_client_key_file}, run},
    SettingSpec{"tls-client-key-file-pass", TextSetting{&S::tls_client_key_file_pass}, run},
    SettingSpec{"tls-auth-clients",
                ChoiceSetting{&S::tls_auth_clients, auth_clients},
                run,
                {},
                "ask clients for a certificate: yes, no, optional (yes)"},
    SettingSpec{"tls-handshake-timeout",
                IntegerSetting{&S::tls_handshake_timeout_s, 0, int_limit},
                run,
                {},
                "seconds for the TLS handshake, or over RDMA until a buffer is announced; 0 unlimited (10)"},
    SettingSpec{"rdma-port",
                IntegerSetting{&S::rdma_port, any_port, 65535},
                run,
                {},
                "RDMA port, may equal the TCP port; 0 turns RDMA off (0)"},
    SettingSpec{"rdma-bind", WordsSetting{&S::rdma_bind}, run, {}, "addresses for RDMA (those of --bind)"},
    SettingSpec{"rdma-rx-size",
                IntegerSetting{&S::rdma_rx_size, 64 * 1024, 16 * 1024 * 1024, Unit::bytes},
                start,
                {},
                "largest receive buffer of an RDMA connection, 64kb to 16mb (1mb)"},
    SettingSpec{"rdma-completion-vector", IntegerSetting{&S::rdma_comp_vector, -1, 1024}, start,
                "rdma-comp-vector", "completion vector; -1 chooses at random (-1)"},
    SettingSpec{"rdma-tls-port", IntegerSetting{&S::rdma_tls_port, any_port, 65535}, run, "tls-rdma-port",
                "port for TLS over RDMA; 0 turns it off (0)"},
    SettingSpec{"rdma-provider",
                ChoiceSetting{&S::rdma_provider, providers},
                start,
                {},
                "auto, weir (the software NIC) or system (the machine's devices) (auto)"},
    SettingSpec{"rdma-required",
                BoolSetting{&S::rdma_required},
                start,
                {},
                "refuse to start if RDMA cannot be opened: yes, no (yes)"},
    SettingSpec{"metrics-port",
                IntegerSetting{&S::metrics_port, any_port, 65535},
                run,
                {},
                "port of a page for Prometheus, GET /metrics; 0 turns it off (0)"},
    SettingSpec{"metrics-bind",
                WordsSetting{&S::metrics_bind},
                run,
                {},
                "addresses for that page, which needs no password (127.0.0.1 -::1)"},
    SettingSpec{"idle-spin",
                IntegerSetting{&S::idle_spin_us, 0, 1000},
                start,
                {},
                "microseconds to look for more input before sleeping; 0 sleeps at once (50)"},
    SettingSpec{"protected-mode",
                BoolSetting{&S::protected_mode},
                run,
                {},
                "without a password, serve only this host: yes, no (yes)"},
    SettingSpec{
        "requirepass", TextSetting{&S::requirepass}, run, {}, "password that clients must give with AUTH"},
    SettingSpec{"aclfile", TextSetting{&S::aclfile}, start, {}, "file with users; ACL SAVE writes it"},
    SettingSpec{"acl-pubsub-default", ChoiceSetting{&S::acl_pubsub_default, new_users_channels}},
    SettingSpec{"acllog-max-len", IntegerSetting{&S::acllog_max_len, 0, no_limit}},
    SettingSpec{"maxclients",
                IntegerSetting{&S::maxclients, 1, 4294967295},
                run,
                {},
                "maximum number of clients (10000)"},
    SettingSpec{"timeout",
                IntegerSetting{&S::timeout_s, 0, int_limit},
                run,
                {},
                "close clients after this many idle seconds; 0 never (0)"},
    SettingSpec{"auth-timeout",
                IntegerSetting{&S::auth_timeout_s, 0, int_limit},
                run,
                {},
                "with requirepass, seconds until a client must have given it; 0 unlimited (60)"},
    SettingSpec{"proto-max-bulk-len",
                IntegerSetting{&S::proto_max_bulk_len, 1024 * 1024, no_limit, Unit::bytes},
                run,
                {},
                "largest argument accepted (512mb)"},
    SettingSpec{"client-query-buffer-limit",
                IntegerSetting{&S::client_query_buffer_limit, 1024 * 1024, no_limit, Unit::bytes}},
    SettingSpec{"client-output-buffer-limit", OutputLimitSetting{}},
    SettingSpec{
        "databases", IntegerSetting{&S::databases, 1, int_limit}, start, {}, "number of databases (16)"},
    SettingSpec{"maxmemory",
                IntegerSetting{&S::maxmemory, 0, no_limit, Unit::bytes},
                run,
                {},
                "memory for data; 0 unlimited (0)"},
    SettingSpec{"maxmemory-clients",
                IntegerSetting{&S::maxmemory_clients, -100, no_limit, Unit::bytes_or_percent},
                run,
                {},
                "memory for all clients' requests and replies, or N% of maxmemory; 0 unlimited (0)"},
    SettingSpec{"maxmemory-policy",
                ChoiceSetting{&S::maxmemory_policy, policies},
                run,
                {},
                "what to evict at that limit: noeviction, allkeys-lru, ... (noeviction)"},
    SettingSpec{"maxmemory-samples", IntegerSetting{&S::maxmemory_samples, 1, 64}},
    SettingSpec{"lfu-log-factor", IntegerSetting{&S::lfu_log_factor, 0, int_limit}},
    SettingSpec{"lfu-decay-time", IntegerSetting{&S::lfu_decay_time_min, 0, int_limit}},
    SettingSpec{"hash-max-listpack-entries", IntegerSetting{&S::hash_max_listpack_entries, 0, no_limit}, run,
                "hash-max-ziplist-entries"},
    SettingSpec{"hash-max-listpack-value",
                IntegerSetting{&S::hash_max_listpack_value, 0, no_limit, Unit::bytes}, run,
                "hash-max-ziplist-value"},
    SettingSpec{"zset-max-listpack-entries", IntegerSetting{&S::zset_max_listpack_entries, 0, no_limit}, run,
                "zset-max-ziplist-entries"},
    SettingSpec{"zset-max-listpack-value",
                IntegerSetting{&S::zset_max_listpack_value, 0, no_limit, Unit::bytes}, run,
                "zset-max-ziplist-value"},
    SettingSpec{"set-max-intset-entries", IntegerSetting{&S::set_max_intset_entries, 0, no_limit}},
    SettingSpec{"set-max-listpack-entries", IntegerSetting{&S::set_max_listpack_entries, 0, no_limit}},
    SettingSpec{"set-max-listpack-value",
                IntegerSetting{&S::set_max_listpack_value, 0, no_limit, Unit::bytes}},
    SettingSpec{"stream-node-max-bytes", IntegerSetting{&S::stream_node_max_bytes, 0, no_limit, Unit::bytes}},
    SettingSpec{"stream-node-max-entries", IntegerSetting{&S::stream_node_max_entries, 0, no_limit}},
    SettingSpec{"hll-sparse-max-bytes", IntegerSetting{&S::hll_sparse_max_bytes, 0, no_limit, Unit::bytes}},
    SettingSpec{"busy-reply-threshold", IntegerSetting{&S::busy_reply_threshold_ms, 0, no_limit}, run,
                "lua-time-limit", "milliseconds that a script runs before others get BUSY; 0 never (5000)"},
    SettingSpec{"lua-memory-limit",
                IntegerSetting{&S::lua_memory_limit, 4 * 1024 * 1024, no_limit, Unit::bytes},
                start,
                {},
                "memory for scripts' own variables, not for data (256mb)"},
    SettingSpec{"list-max-listpack-size", IntegerSetting{&S::list_max_listpack_size, -int_limit, int_limit},
                run, "list-max-ziplist-size"},
    SettingSpec{"list-compress-depth",
                IntegerSetting{&S::list_compress_depth, 0, int_limit},
                run,
                {},
                {},
                without_effect},
    SettingSpec{"hz", IntegerSetting{&S::hz, 1, 500}, run, {}, {}, without_effect},
    SettingSpec{"slowlog-log-slower-than", IntegerSetting{&S::slowlog_log_slower_than_us, -1, no_limit}, run,
                "commandlog-execution-slower-than"},
    SettingSpec{"slowlog-max-len", IntegerSetting{&S::slowlog_max_len, 0, no_limit}, run,
                "commandlog-slow-execution-max-len"},
    SettingSpec{"commandlog-request-larger-than",
                IntegerSetting{&S::commandlog_request_larger_than, -1, no_limit}},
    SettingSpec{"commandlog-large-request-max-len",
                IntegerSetting{&S::commandlog_large_request_max_len, 0, no_limit}},
    SettingSpec{"commandlog-reply-larger-than",
                IntegerSetting{&S::commandlog_reply_larger_than, -1, no_limit}},
    SettingSpec{"commandlog-large-reply-max-len",
                IntegerSetting{&S::commandlog_large_reply_max_len, 0, no_limit}},
    SettingSpec{"latency-monitor-threshold", IntegerSetting{&S::latency_monitor_threshold_ms, 0, no_limit}},
    SettingSpec{"latency-tracking", BoolSetting{&S::latency_tracking}},
    SettingSpec{"latency-tracking-info-percentiles", WordsSetting{&S::latency_percentiles, percentiles_line}},
    SettingSpec{"notify-keyspace-events", WordsSetting{&S::notify_keyspace_events, event_classes_line}},
    SettingSpec{"tracking-table-max-keys", IntegerSetting{&S::tracking_table_max_keys, 0, no_limit}},
    SettingSpec{"logfile", TextSetting{&S::logfile}, start, {}, "file for the log, instead of stdout"},
    SettingSpec{
        "loglevel", ChoiceSetting{&S::loglevel, levels}, run, {}, "debug, verbose, notice, warning (notice)"},
    SettingSpec{"pidfile", TextSetting{&S::pidfile}, start, {}, "file for the process id"},
    SettingSpec{"dir", TextSetting{&S::dir}, guarded, {}, "working directory; relative paths start there"},
    SettingSpec{
        "daemonize", BoolSetting{&S::daemonize}, start, {}, "run in the background once it listens (no)"},
    SettingSpec{"server-cpulist", WordsSetting{&S::server_cpulist, cpu_line}, start, "server_cpulist",
                "CPUs that the server runs on, such as 0-2,4 (as the system chooses)"},
    SettingSpec{"bio-cpulist", WordsSetting{&S::bio_cpulist, cpu_line}, start, "bio_cpulist",
                "CPUs for the threads that write and sync files (those of the server)"},
    SettingSpec{"shutdown-timeout",
                IntegerSetting{&S::shutdown_timeout_s, 0, int_limit},
                run,
                {},
                "seconds to wait at the end for replicas that lag; 0 not at all (10)"},
    SettingSpec{"enable-debug-command", ChoiceSetting{&S::enable_debug_command, permissions}, start},
    SettingSpec{"save",
                SavePointsSetting{},
                run,
                {},
                "pairs of SECONDS CHANGES: save if there were as many; empty: never by itself"},
    SettingSpec{"dbfilename",
                WordsSetting{&S::dbfilename, file_name},
                guarded,
                {},
                "snapshot file, in --dir; read at the start (dump.rdb)"},
    SettingSpec{"lazyfree-lazy-eviction", BoolSetting{&S::lazyfree_lazy_eviction}},
    SettingSpec{"lazyfree-lazy-expire", BoolSetting{&S::lazyfree_lazy_expire}},
    SettingSpec{"lazyfree-lazy-server-del", BoolSetting{&S::lazyfree_lazy_server_del}},
    SettingSpec{"availability-zone", TextSetting{&S::availability_zone}},
    SettingSpec{"rdb-dialect", ChoiceSetting{&S::rdb_dialect, dialects}},
    SettingSpec{"rdb-key-save-delay", IntegerSetting{&S::rdb_key_save_delay_us, -int_limit, int_limit}},
    SettingSpec{"rdbcompression", BoolSetting{&S::rdbcompression}},
    SettingSpec{"rdbchecksum", BoolSetting{&S::rdbchecksum}, start},
    SettingSpec{"stop-writes-on-bgsave-error",
                BoolSetting{&S::stop_writes_on_bgsave_error},
                run,
                {},
                "refuse changes while snapshots fail: yes, no (yes)"},
    SettingSpec{"enable-protected-configs",
                ChoiceSetting{&S::protected_configs, permissions},
                start,
                {},
                "let CONFIG SET change dir and dbfilename: no, yes, local (no)"},
    SettingSpec{"repl-backlog-size",
                IntegerSetting{&S::repl_backlog_size, 1, no_limit, Unit::bytes},
                run,
                {},
                "changes to keep for replicas that are cut off (1mb)"},
    SettingSpec{"repl-backlog-ttl",
                IntegerSetting{&S::repl_backlog_ttl_s, 0, int_limit},
                run,
                {},
                "drop them after this many seconds without a replica; 0 never (3600)"},
    SettingSpec{"repl-timeout",
                IntegerSetting{&S::repl_timeout_s, 1, int_limit},
                run,
                {},
                "give up a replica or primary after this many seconds of silence (60)"},
    SettingSpec{"repl-ping-replica-period", IntegerSetting{&S::repl_ping_replica_period_s, 1, int_limit}, run,
                "repl-ping-slave-period", "seconds between PINGs to replicas (10)"},
    SettingSpec{"min-replicas-to-write", IntegerSetting{&S::min_replicas_to_write, 0, int_limit}, run,
                "min-slaves-to-write", "refuse changes while fewer replicas are in touch; 0 never (0)"},
    SettingSpec{"min-replicas-max-lag", IntegerSetting{&S::min_replicas_max_lag_s, 0, int_limit}, run,
                "min-slaves-max-lag", "seconds without a word after which a replica is out of touch (10)"},
    SettingSpec{"appendonly",
                BoolSetting{&S::appendonly},
                run,
                {},
                "keep a log of changes in --appenddirname and read it at the start: yes, no (no)"},
    SettingSpec{"appendfsync",
                ChoiceSetting{&S::appendfsync, fsyncs},
                run,
                {},
                "when the log is synced: always (before a reply leaves), everysec, no (everysec)"},
    SettingSpec{"appendfilename",
                TextSetting{&S::appendfilename},
                start,
                {},
                "prefix of the log's file names (appendonly.aof)"},
    SettingSpec{"appenddirname",
                TextSetting{&S::appenddirname},
                start,
                {},
                "folder of the log, in --dir (appendonlydir)"},
    SettingSpec{"aof-load-truncated",
                BoolSetting{&S::aof_load_truncated},
                run,
                {},
                "start even if the log ends in the middle of a request: yes, no (yes)"},
    SettingSpec{"auto-aof-rewrite-percentage", IntegerSetting{&S::auto_aof_rewrite_percentage, 0, int_limit}},
    SettingSpec{"auto-aof-rewrite-min-size",
                IntegerSetting{&S::auto_aof_rewrite_min_size, 0, no_limit, Unit::bytes}},
    SettingSpec{"replicaof", WordsSetting{&S::replicaof, primary_line}, start, "slaveof",
                "replicate the server at HOST PORT"},
    SettingSpec{"masteruser", TextSetting{&S::masteruser}, run, "primaryuser",
                "user for the primary or the cluster's nodes (default)"},
    SettingSpec{"masterauth", TextSetting{&S::masterauth}, run, "primaryauth", "password for them"},
    SettingSpec{"tls-replication",
                BoolSetting{&S::tls_replication},
                run,
                {},
                "replicate over TLS: yes, no (no); needs --tls-ca-cert-file"},
    SettingSpec{"rdma-replication",
                BoolSetting{&S::rdma_replication},
                run,
                {},
                "replicate over RDMA: PORT is the primary's RDMA port; yes, no (no)"},
    SettingSpec{"replica-read-only", BoolSetting{&S::replica_read_only}, run, "slave-read-only",
                "as a replica, refuse clients' changes: yes, no (yes)"},
    SettingSpec{"replica-serve-stale-data", BoolSetting{&S::replica_serve_stale_data}, run,
                "slave-serve-stale-data",
                "as a replica, serve clients while the link is down: yes, no (yes)"},
    SettingSpec{"replica-priority", IntegerSetting{&S::replica_priority, 0, int_limit}, run,
                "slave-priority"},
    SettingSpec{"replica-announced", BoolSetting{&S::replica_announced}},
    SettingSpec{"replica-announce-ip", TextSetting{&S::replica_announce_ip}, run, "slave-announce-ip"},
    SettingSpec{"replica-announce-port", IntegerSetting{&S::replica_announce_port, 0, 65535}, run,
                "slave-announce-port"},
    SettingSpec{"cluster-gateway",
                WordsSetting{&S::cluster_gateway, node_line},
                start,
                {},
                "keep no data and pass commands on to the cluster that the node at HOST:PORT belongs to"},
    SettingSpec{"cluster-gateway-timeout",
                IntegerSetting{&S::cluster_gateway_timeout_ms, 100, int_limit},
                run,
                {},
                "milliseconds to wait for a node of that cluster (5000)"},
    SettingSpec{"cluster-gateway-own-links",
                IntegerSetting{&S::cluster_gateway_own_links, 0, 1'000'000},
                run,
                {},
                "connections to nodes for the exclusive use of clients (1000)"},
    SettingSpec{"cluster-gateway-own-links-per-user",
                IntegerSetting{&S::cluster_gateway_own_links_per_user, 0, 1'000'000},
                run,
                {},
                "how many of them the clients of one user may have (0: as many as there are)"},
    SettingSpec{"tls-cluster",
                BoolSetting{&S::tls_cluster},
                start,
                {},
                "connect to its nodes with TLS: yes, no (no); needs --tls-ca-cert-file"},
};

Outcome assign_save_points(Settings& settings, std::span<const std::string> words) {
  // One text holds all points; several words are one of several lines in a file.
  const auto points = read_save_points(words);
  if (!points) return std::unexpected(points.error());
  const bool adds = words.size() > 1 && settings.save_given && !settings.save.empty();
  const std::string text = save_points_text(*points);
  settings.save = adds ? settings.save + ' ' + text : text;
  settings.save_given = true;
  return {};
}

// As a negative number.
std::optional<std::int64_t> parse_percentage(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  const auto percent = parse_int(text.substr(0, text.size() - 1));
  return percent && *percent >= 0 ? std::optional(-*percent) : std::nullopt;
}

struct Assign {
  Settings& settings;
  std::span<const std::string> words;

  Outcome single() const {
    if (words.size() != 1) return std::unexpected("wrong number of arguments");
    return {};
  }

  Outcome operator()(const IntegerSetting& kind) const {
    if (auto one = single(); !one) return one;
    std::optional<std::int64_t> value;
    if (kind.unit == Unit::bytes) {
      value = parse_memory(words[0]);
      if (!value) return std::unexpected("argument must be a memory value");
    } else if (kind.unit == Unit::bytes_or_percent) {
      value = parse_memory(words[0]);
      if (!value) value = parse_percentage(words[0]);
      if (!value) return std::unexpected("argument must be a memory or percent value");
      if (*value < kind.least)
        return std::unexpected("percentage argument must be less or equal to " + std::to_string(-kind.least));
    } else if (kind.unit == Unit::octal) {
      std::int64_t octal = 0;
      const char* end = words[0].data() + words[0].size();
      const auto parsed = std::from_chars(words[0].data(), end, octal, 8);
      if (parsed.ec != std::errc{} || parsed.ptr != end) {
        return std::unexpected("argument couldn't be parsed as an octal number");
      }
      value = octal;
    } else {
      value = parse_int(words[0]);
      if (!value) return std::unexpected("argument couldn't be parsed into an integer");
    }
    if (*value < kind.least || *value > kind.most) {
      return std::unexpected("argument must be between " + std::to_string(kind.least) + " and " +
                             std::to_string(kind.most) + " inclusive");
    }
    settings.*kind.member = *value;
    return {};
  }

  Outcome operator()(const BoolSetting& kind) const {
    if (auto one = single(); !one) return one;
    const bool yes = same_word(words[0], "yes");
    if (!yes && !same_word(words[0], "no")) return std::unexpected("argument must be 'yes' or 'no'");
    settings.*kind.member = yes;
    return {};
  }

  Outcome operator()(const AbsentSetting& kind) const {
    const std::string text = joined_words(words);
    const auto is_it = [&](std::string_view harmless) { return same_word(harmless, text); };
    if (std::ranges::any_of(kind.harmless, is_it)) return {};
    return std::unexpected(std::string(kind.why));
  }

  Outcome operator()(const IdleSetting& kind) const {
    std::string text = joined_words(words);
    switch (kind.form) {
      case IdleSetting::Form::yes_no:
        if (auto one = single(); !one) return one;
        if (!same_word(text, "yes") && !same_word(text, "no"))
          return std::unexpected("argument must be 'yes' or 'no'");
        break;
      case IdleSetting::Form::number:
        if (!parse_int(text)) return std::unexpected("argument couldn't be parsed into an integer");
        break;
      case IdleSetting::Form::bytes: {
        const auto bytes = parse_memory(text);
        if (!bytes) return std::unexpected("argument must be a memory value");
        text = std::to_string(*bytes);
        break;
      }
      case IdleSetting::Form::text:
        break;
    }
    settings.idle[kind.name] = std::move(text);
    return {};
  }

  Outcome operator()(const TextSetting& kind) const {
    if (auto one = single(); !one) return one;
    settings.*kind.member = words[0];
    return {};
  }

  Outcome operator()(const ChoiceSetting& kind) const {
    if (auto one = single(); !one) return one;
    for (std::size_t i = 0; i < kind.choices.size(); ++i) {
      if (same_word(kind.choices[i], words[0])) {
        settings.*kind.member = static_cast<int>(i);
        return {};
      }
    }
    std::string text = "argument(s) must be one of the following: ";
    for (std::size_t i = 0; i < kind.choices.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::string(kind.choices[i]);
    }
    return std::unexpected(text);
  }

  Outcome operator()(const WordsSetting& kind) const {
    auto line = kind.line == nullptr ? joined_words(words) : kind.line(words);
    if (!line) return std::unexpected(std::move(line.error()));
    settings.*kind.member = std::move(*line);
    return {};
  }

  Outcome operator()(const SavePointsSetting&) const { return assign_save_points(settings, words); }

  Outcome operator()(const OutputLimitSetting&) const {
    // A file gives words; CONFIG SET gives one text that holds several.
    const auto split =
        words.size() == 1 ? split_words(words.front()) : std::vector(words.begin(), words.end());
    if (!split) return std::unexpected("Unbalanced quotes in buffer limit configuration.");
    const std::vector<std::string>& all = *split;
    if (all.empty() || all.size() % 4 != 0) {
      return std::unexpected("Wrong number of arguments in buffer limit configuration.");
    }
    Settings changed = settings;
    for (std::size_t i = 0; i < all.size(); i += 4) {
      OutputLimit* limit = same_word(all[i], "normal") ? &changed.normal_output
                           : same_word(all[i], "slave") || same_word(all[i], "replica")
                               ? &changed.replica_output
                           : same_word(all[i], "pubsub") ? &changed.pubsub_output
                                                         : nullptr;
      if (limit == nullptr)
        return std::unexpected("Invalid client class specified in buffer limit configuration.");
      const auto hard = parse_memory(all[i + 1]);
      const auto soft = parse_memory(all[i + 2]);
      const auto seconds = parse_int(all[i + 3]);
      if (!hard || !soft || !seconds || *seconds < 0) {
        return std::unexpected("Error in hard, soft or soft_seconds setting in buffer limit configuration.");
      }
      *limit = {*hard, *soft, *seconds};
    }
    settings = std::move(changed);
    return {};
  }
};

struct Print {
  const Settings& settings;

  std::string operator()(const IntegerSetting& kind) const {
    const std::int64_t value = settings.*kind.member;
    if (kind.unit == Unit::bytes_or_percent && value < 0) return std::to_string(-value) + '%';
    if (kind.unit != Unit::octal) return std::to_string(value);
    std::array<char, 24> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value, 8).ptr;
    return {text.data(), end};
  }
  std::string operator()(const BoolSetting& kind) const { return settings.*kind.member ? "yes" : "no"; }
  std::string operator()(const AbsentSetting& kind) const { return std::string(kind.harmless.front()); }
  std::string operator()(const IdleSetting& kind) const {
    const auto given = settings.idle.find(kind.name);
    return given == settings.idle.end() ? std::string(kind.initial) : given->second;
  }
  std::string operator()(const TextSetting& kind) const { return settings.*kind.member; }
  std::string operator()(const ChoiceSetting& kind) const {
    return std::string(kind.choices[static_cast<std::size_t>(settings.*kind.member)]);
  }
  std::string operator()(const WordsSetting& kind) const { return settings.*kind.member; }
  std::string operator()(const SavePointsSetting&) const { return settings.save; }
  std::string operator()(const OutputLimitSetting&) const {
    auto one = [](std::string_view name, const OutputLimit& limit) {
      return std::string(name) + ' ' + std::to_string(limit.hard_bytes) + ' ' +
             std::to_string(limit.soft_bytes) + ' ' + std::to_string(limit.soft_s);
    };
    return one("normal", settings.normal_output) + ' ' + one("slave", settings.replica_output) + ' ' +
           one("pubsub", settings.pubsub_output);
  }
};

}  // namespace

std::span<const SettingSpec> setting_specs() {
  static const std::vector<SettingSpec> all = [] {
    std::vector<SettingSpec> both(specs.begin(), specs.end());
    both.insert(both.end(), idle_setting_specs().begin(), idle_setting_specs().end());
    return both;
  }();
  return all;
}

const SettingSpec* find_setting(std::string_view name) {
  for (const SettingSpec& spec : setting_specs()) {
    if (same_word(spec.name, name) || (!spec.other_name.empty() && same_word(spec.other_name, name)))
      return &spec;
  }
  return nullptr;
}

std::expected<void, std::string> assign_setting(Settings& settings, const SettingSpec& spec,
                                                std::span<const std::string> words) {
  auto assigned = std::visit(Assign{settings, words}, spec.kind);
  if (assigned && spec.without_effect) settings.given_without_effect.insert(spec.name);
  return assigned;
}

std::string setting_text(const Settings& settings, const SettingSpec& spec) {
  return std::visit(Print{settings}, spec.kind);
}

}  // namespace weir::kv

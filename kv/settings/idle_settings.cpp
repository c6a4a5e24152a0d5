#include "kv/settings/idle_settings.hpp"

#include <array>

namespace weir::kv {

namespace {

using Form = IdleSetting::Form;
using namespace std::string_view_literals;

// Why settings have no effect.
constexpr std::string_view no_defrag =
    "nothing is defragmented: collections keep their memory tight as they change";
constexpr std::string_view by_deadlines = "work is done when it is due, not so many times a second";
constexpr std::string_view one_thread = "one thread serves all clients";
constexpr std::string_view always_lazy = "what is large is always freed a little at a time";
constexpr std::string_view no_child = "no child process writes snapshots and logs; the server thread does";
constexpr std::string_view log_form =
    "the log has one form: a snapshot and the requests after it, files no longer needed gone at once";
constexpr std::string_view one_sync =
    "a full synchronisation always streams a snapshot and spools it at the replica";
constexpr std::string_view always_so = "the server always does so";
constexpr std::string_view own_looks = "how a process looks to people, which differs here";
constexpr std::string_view means_of_tests = "a means of tests and of finding crashes";
constexpr std::string_view openssl_cache = "TLS sessions are cached as OpenSSL does";
constexpr std::string_view no_node = "this server is no part of a cluster";

constexpr SettingSpec idle(std::string_view name, Form form, std::string_view initial, std::string_view why,
                           std::string_view other_name = {}) {
  return {name, IdleSetting{name, form, initial, why}, Change::any_time, other_name, {}, true};
}

constexpr std::array only_no{"no"sv};
constexpr std::array only_off{"off"sv, "no"sv};
constexpr std::array only_empty{""sv};
constexpr std::array only_zero{"0"sv};
constexpr std::array byte_orders{""sv, "C"sv, "POSIX"sv};
constexpr std::array only_legacy{"legacy"sv};
constexpr std::array only_default{"default"sv};
constexpr std::array only_resp2{"2"sv};
constexpr std::array known_supervisors{"no"sv, "auto"sv, "systemd"sv};
constexpr std::array spoken_tls_versions{""sv, "TLSv1.2 TLSv1.3"sv};

constexpr SettingSpec absent(std::string_view name, std::span<const std::string_view> harmless,
                             std::string_view why) {
  return {name, AbsentSetting{why, harmless}, Change::any_time};
}

const std::array idle_specs{
    idle("active-defrag-cycle-max", Form::number, "25", no_defrag),
    idle("active-defrag-cycle-min", Form::number, "1", no_defrag),
    idle("active-defrag-cycle-us", Form::number, "500", no_defrag),
    idle("active-defrag-ignore-bytes", Form::bytes, "104857600", no_defrag),
    idle("active-defrag-max-scan-fields", Form::number, "1000", no_defrag),
    idle("active-defrag-threshold-lower", Form::number, "10", no_defrag),
    idle("active-defrag-threshold-upper", Form::number, "100", no_defrag),
    idle("active-expire-effort", Form::number, "1", by_deadlines),
    idle("activedefrag", Form::yes_no, "no", no_defrag),
    idle("activerehashing", Form::yes_no, "yes", by_deadlines),
    idle("always-show-logo", Form::yes_no, "no", own_looks),
    idle("aof-disable-auto-gc", Form::yes_no, "no", log_form),
    idle("aof-load-corrupt-tail-max-size", Form::bytes, "0", log_form),
    idle("aof-rewrite-cpulist", Form::text, "", no_child, "aof_rewrite_cpulist"),
    idle("aof-rewrite-incremental-fsync", Form::yes_no, "yes", no_child),
    idle("aof-timestamp-enabled", Form::yes_no, "no", log_form),
    idle("aof-use-rdb-preamble", Form::yes_no, "yes", log_form),
    idle("bgsave-cpulist", Form::text, "", no_child, "bgsave_cpulist"),
    idle("cluster-allow-pubsubshard-when-down", Form::yes_no, "yes", no_node),
    idle("cluster-allow-reads-when-down", Form::yes_no, "no", no_node),
    idle("cluster-allow-replica-migration", Form::yes_no, "yes", no_node),
    idle("cluster-announce-bus-port", Form::number, "0", no_node),
    idle("cluster-announce-client-ipv4", Form::text, "", no_node),
    idle("cluster-announce-client-ipv6", Form::text, "", no_node),
    idle("cluster-announce-client-port", Form::number, "0", no_node),
    idle("cluster-announce-client-tls-port", Form::number, "0", no_node),
    idle("cluster-announce-hostname", Form::text, "", no_node),
    idle("cluster-announce-human-nodename", Form::text, "", no_node),
    idle("cluster-announce-ip", Form::text, "", no_node),
    idle("cluster-announce-port", Form::number, "0", no_node),
    idle("cluster-announce-tls-port", Form::number, "0", no_node),
    idle("cluster-blacklist-ttl", Form::number, "60", no_node),
    idle("cluster-compatibility-sample-ratio", Form::number, "0", no_node),
    idle("cluster-config-file", Form::text, "nodes.conf", no_node),
    idle("cluster-config-save-behavior", Form::text, "sync", no_node),
    idle("cluster-databases", Form::number, "1", no_node),
    idle("cluster-link-sendbuf-limit", Form::bytes, "0", no_node),
    idle("cluster-manual-failover-timeout", Form::number, "5000", no_node),
    idle("cluster-message-gossip-perc", Form::number, "10", no_node),
    idle("cluster-migration-barrier", Form::number, "1", no_node),
    idle("cluster-node-timeout", Form::number, "15000", no_node),
    idle("cluster-ping-interval", Form::number, "1000", no_node),
    idle("cluster-port", Form::number, "0", no_node),
    idle("cluster-preferred-endpoint-type", Form::text, "ip", no_node),
    idle("cluster-replica-no-failover", Form::yes_no, "no", no_node, "cluster-slave-no-failover"),
    idle("cluster-replica-validity-factor", Form::number, "10", no_node, "cluster-slave-validity-factor"),
    idle("cluster-require-full-coverage", Form::yes_no, "yes", no_node),
    idle("cluster-slot-migration-log-max-len", Form::number, "1000", no_node),
    idle("cluster-slot-stats-enabled", Form::yes_no, "no", no_node),
    idle("crash-log-enabled", Form::yes_no, "yes", means_of_tests),
    idle("crash-memcheck-enabled", Form::yes_no, "yes", means_of_tests),
    idle("debug-context", Form::text, "", means_of_tests),
    idle("disable-thp", Form::yes_no, "yes", no_child),
    idle("dual-channel-replication-enabled", Form::yes_no, "no", one_sync),
    idle("dynamic-hz", Form::yes_no, "yes", by_deadlines),
    idle("enable-module-command", Form::text, "no", "there is no MODULE LOAD that it would permit"),
    idle("events-per-io-thread", Form::number, "2", one_thread),
    idle("extended-redis-compatibility", Form::yes_no, "no", always_so),
    idle("hide-user-data-from-log", Form::yes_no, "yes", always_so),
    idle("ignore-warnings", Form::text, "", own_looks),
    idle("io-threads", Form::number, "1", one_thread),
    idle("io-threads-always-active", Form::yes_no, "no", one_thread),
    idle("io-threads-do-reads", Form::yes_no, "no", one_thread),
    idle("jemalloc-bg-thread", Form::yes_no, "yes", no_defrag),
    idle("key-load-delay", Form::number, "0", means_of_tests),
    idle("lazyexpire-nested-arbitrary-keys", Form::yes_no, "yes", always_so),
    idle("lazyfree-lazy-user-del", Form::yes_no, "no", always_lazy),
    idle("lazyfree-lazy-user-flush", Form::yes_no, "no", always_lazy),
    idle("loading-process-events-interval-bytes", Form::bytes, "2097152", means_of_tests),
    idle("lookahead", Form::number, "16", one_thread),
    idle("lua-replicate-commands", Form::yes_no, "yes", always_so),
    idle("max-new-connections-per-cycle", Form::number, "10", one_thread),
    idle("max-new-tls-connections-per-cycle", Form::number, "1", one_thread),
    idle("maxmemory-eviction-tenacity", Form::number, "10", always_so),
    idle("min-io-threads-avoid-copy-reply", Form::number, "7", one_thread),
    idle("min-string-size-avoid-copy-reply", Form::bytes, "16384", one_thread),
    idle("min-string-size-avoid-copy-reply-threaded", Form::bytes, "65536", one_thread),
    idle("no-appendfsync-on-rewrite", Form::yes_no, "no", no_child),
    idle("oom-score-adj", Form::text, "no", no_child),
    idle("oom-score-adj-values", Form::text, "0 200 800", no_child),
    idle("prefetch-batch-max-size", Form::number, "16", one_thread),
    idle("proc-title-template", Form::text, "{title} {listen-addr} {server-mode}", own_looks),
    idle("propagation-error-behavior", Form::text, "ignore", one_sync),
    idle("rdb-del-sync-files", Form::yes_no, "no", one_sync),
    idle("rdb-save-incremental-fsync", Form::yes_no, "yes", no_child),
    idle("rdb-version-check", Form::text, "strict", always_so),
    idle("repl-disable-tcp-nodelay", Form::yes_no, "no", one_sync),
    idle("repl-diskless-load", Form::text, "disabled", one_sync),
    idle("repl-diskless-sync", Form::yes_no, "yes", one_sync),
    idle("repl-diskless-sync-delay", Form::number, "5", one_sync),
    idle("repl-diskless-sync-max-replicas", Form::number, "0", one_sync),
    idle("repl-rdb-channel", Form::yes_no, "no", one_sync),
    idle("replica-full-sync-buffer-limit", Form::bytes, "0", one_sync),
    idle("replica-ignore-disk-write-errors", Form::yes_no, "no", one_sync),
    idle("replica-ignore-maxmemory", Form::yes_no, "yes", always_so, "slave-ignore-maxmemory"),
    idle("replica-lazy-flush", Form::yes_no, "no", always_lazy, "slave-lazy-flush"),
    idle("sanitize-dump-payload", Form::text, "no", always_so),
    idle("set-proc-title", Form::yes_no, "yes", own_looks),
    idle("slot-migration-max-failover-repl-bytes", Form::bytes, "0", no_node),
    idle("syslog-facility", Form::text, "local0", own_looks),
    idle("syslog-ident", Form::text, "redis", own_looks),
    idle("tls-session-cache-size", Form::number, "20480", openssl_cache),
    idle("tls-session-cache-timeout", Form::number, "300", openssl_cache),
    idle("tls-session-caching", Form::yes_no, "yes", openssl_cache),
    idle("use-exit-on-panic", Form::yes_no, "no", means_of_tests),
    idle("watchdog-period", Form::number, "0", means_of_tests),
    absent("auto-failover-on-shutdown", only_no,
           "this server is no part of a cluster; FAILOVER hands over to a replica"),
    absent("bind-source-addr", only_empty,
           "the system chooses the address from which this server connects to others"),
    absent("client-default-resp", only_resp2, "clients choose RESP3 themselves, with HELLO 3"),
    absent("cluster-enabled", only_no, "this server is no part of a cluster"),
    absent("enable-debug-assert", only_no, "there is no DEBUG ASSERT"),
    absent("gopher-enabled", only_no, "this server does not speak Gopher"),
    absent("import-mode", only_no, "there is no import mode: keys expire while they are imported, too"),
    absent("locale-collate", byte_orders, "SORT ALPHA orders texts by their bytes"),
    absent("log-format", only_legacy, "the log has one format"),
    absent("log-timestamp-format", only_legacy, "the log has one form of times"),
    absent("lua-enable-insecure-api", only_no, "scripts never get the functions that this would bring back"),
    absent("mptcp", only_no, "this server does not listen for Multipath TCP"),
    absent("repl-mptcp", only_no, "this server does not replicate over Multipath TCP"),
    absent("req-res-logfile", only_empty, "requests and replies are not logged"),
    absent("shutdown-on-sigint", only_default,
           "SIGINT ends the server as SHUTDOWN does; use SHUTDOWN for another way"),
    absent("shutdown-on-sigterm", only_default,
           "SIGTERM ends the server as SHUTDOWN does; use SHUTDOWN for another way"),
    absent("socket-mark-id", only_zero, "sockets are not marked"),
    absent("supervised", known_supervisors,
           "the server says to systemd that it is ready wherever NOTIFY_SOCKET is set; it does not stop "
           "itself for upstart"),
    absent("syslog-enabled", only_no, "this server writes its log to --logfile or standard output"),
    absent("tls-auth-clients-user", only_off, "certificates do not name users; give a password with AUTH"),
    absent("tls-ciphers", only_empty, "OpenSSL's configuration chooses the ciphers (openssl.cnf)"),
    absent("tls-ciphersuites", only_empty, "OpenSSL's configuration chooses the ciphers (openssl.cnf)"),
    absent("tls-dh-params-file", only_empty, "keys are exchanged by elliptic curves"),
    absent("tls-prefer-server-ciphers", only_no, "OpenSSL's configuration chooses the ciphers (openssl.cnf)"),
    absent("tls-protocols", spoken_tls_versions, "TLS 1.2 and 1.3 are spoken"),
    absent("unixsocketgroup", only_empty,
           "the socket belongs to the process's group; use --unixsocketperm, or start it with that group"),
};

}  // namespace

std::span<const SettingSpec> idle_setting_specs() { return idle_specs; }

}  // namespace weir::kv

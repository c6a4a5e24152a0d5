#include "kv/server/idle_settings.hpp"

#include <array>

namespace weir::kv {

namespace {

using Form = IdleSetting::Form;

constexpr SettingSpec idle(std::string_view name, Form form, std::string_view initial,
                           std::string_view other_name = {}) {
  return {name, IdleSetting{name, form, initial}, Change::any_time, other_name, {}, true};
}

const std::array idle_specs{
    idle("active-defrag-cycle-max", Form::number, "25"),
    idle("active-defrag-cycle-min", Form::number, "1"),
    idle("active-defrag-ignore-bytes", Form::bytes, "104857600"),
    idle("active-defrag-max-scan-fields", Form::number, "1000"),
    idle("active-defrag-threshold-lower", Form::number, "10"),
    idle("active-defrag-threshold-upper", Form::number, "100"),
    idle("active-expire-effort", Form::number, "1"),
    idle("activedefrag", Form::yes_no, "no"),
    idle("activerehashing", Form::yes_no, "yes"),
    idle("always-show-logo", Form::yes_no, "no"),
    idle("aof-rewrite-incremental-fsync", Form::yes_no, "yes"),
    idle("aof-timestamp-enabled", Form::yes_no, "no"),
    idle("aof-use-rdb-preamble", Form::yes_no, "yes"),
    idle("crash-log-enabled", Form::yes_no, "yes"),
    idle("crash-memcheck-enabled", Form::yes_no, "yes"),
    idle("disable-thp", Form::yes_no, "yes"),
    idle("dynamic-hz", Form::yes_no, "yes"),
    idle("ignore-warnings", Form::text, ""),
    idle("io-threads", Form::number, "1"),
    idle("io-threads-do-reads", Form::yes_no, "no"),
    idle("jemalloc-bg-thread", Form::yes_no, "yes"),
    idle("key-load-delay", Form::number, "0"),
    idle("lazyfree-lazy-eviction", Form::yes_no, "no"),
    idle("lazyfree-lazy-expire", Form::yes_no, "no"),
    idle("lazyfree-lazy-server-del", Form::yes_no, "no"),
    idle("lazyfree-lazy-user-del", Form::yes_no, "no"),
    idle("lazyfree-lazy-user-flush", Form::yes_no, "no"),
    idle("maxmemory-eviction-tenacity", Form::number, "10"),
    idle("no-appendfsync-on-rewrite", Form::yes_no, "no"),
    idle("oom-score-adj", Form::text, "no"),
    idle("oom-score-adj-values", Form::text, "0 200 800"),
    idle("proc-title-template", Form::text, "{title} {listen-addr} {server-mode}"),
    idle("rdb-del-sync-files", Form::yes_no, "no"),
    idle("rdb-key-save-delay", Form::number, "0"),
    idle("rdb-save-incremental-fsync", Form::yes_no, "yes"),
    idle("repl-disable-tcp-nodelay", Form::yes_no, "no"),
    idle("repl-diskless-load", Form::text, "disabled"),
    idle("repl-diskless-sync", Form::yes_no, "yes"),
    idle("repl-diskless-sync-delay", Form::number, "5"),
    idle("repl-diskless-sync-max-replicas", Form::number, "0"),
    idle("replica-ignore-maxmemory", Form::yes_no, "yes", "slave-ignore-maxmemory"),
    idle("replica-lazy-flush", Form::yes_no, "no", "slave-lazy-flush"),
    idle("sanitize-dump-payload", Form::text, "no"),
    idle("set-proc-title", Form::yes_no, "yes"),
    idle("tls-session-cache-size", Form::number, "20480"),
    idle("tls-session-cache-timeout", Form::number, "300"),
    idle("tls-session-caching", Form::yes_no, "yes"),
    SettingSpec{"cluster-enabled", AbsentSetting{"this server is no part of a cluster"}, Change::at_start},
    SettingSpec{"enable-module-command", AbsentSetting{"this server loads no modules"}, Change::at_start},
    SettingSpec{"syslog-enabled", AbsentSetting{"this server writes its log to --logfile or standard output"},
                Change::at_start},
};

}  // namespace

std::span<const SettingSpec> idle_setting_specs() { return idle_specs; }

}  // namespace weir::kv

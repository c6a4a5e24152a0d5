// The definition of a command: a row of data.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kv/command/key_events.hpp"
#include "kv/resp/reply.hpp"
#include "kv/resp/request.hpp"
#include "kv/resp/request_text.hpp"
#include "kv/store/keyspace.hpp"

namespace weir::kv {

struct Call;

// Flags as COMMAND INFO prints them.
namespace flag {
inline constexpr std::uint32_t write = 1u << 0;
inline constexpr std::uint32_t readonly = 1u << 1;
inline constexpr std::uint32_t denyoom = 1u << 2;
inline constexpr std::uint32_t admin = 1u << 3;
inline constexpr std::uint32_t pubsub = 1u << 4;
inline constexpr std::uint32_t noscript = 1u << 5;
inline constexpr std::uint32_t blocking = 1u << 6;
inline constexpr std::uint32_t loading = 1u << 7;
inline constexpr std::uint32_t stale = 1u << 8;
inline constexpr std::uint32_t skip_monitor = 1u << 9;
inline constexpr std::uint32_t skip_slowlog = 1u << 10;
inline constexpr std::uint32_t asking = 1u << 11;
inline constexpr std::uint32_t fast = 1u << 12;
inline constexpr std::uint32_t no_auth = 1u << 13;
inline constexpr std::uint32_t may_replicate = 1u << 14;
inline constexpr std::uint32_t no_multi = 1u << 15;
inline constexpr std::uint32_t movablekeys = 1u << 16;
inline constexpr std::uint32_t allow_busy = 1u << 17;
inline constexpr std::uint32_t no_mandatory_keys = 1u << 18;
inline constexpr std::uint32_t no_async_loading = 1u << 19;
// Not printed: commands that Redis runs only if an enable-*-command setting allows them.
inline constexpr std::uint32_t needs_permission = 1u << 20;
}  // namespace flag

struct Command {
  std::string_view name;  // lower case; for a subcommand only its own name
  int arity;              // number of words, including the command's; negative: a minimum
  std::uint32_t flags;
  int first_key, last_key, key_step;  // 0, 0, 0: no keys at fixed places
  void (*run)(const Call&);           // null: only its subcommands can be called
  std::string_view group;
  std::string_view summary;
  std::span<const Command> subcommands = {};
  std::string_view container = {};  // a subcommand's command
  std::uint16_t id = 0;             // assigned by the registry, unique

  bool takes(std::size_t words) const {
    const auto n = static_cast<std::int64_t>(words);
    return arity >= 0 ? n == arity : n >= -arity;
  }
  bool has(std::uint32_t wanted) const { return (flags & wanted) != 0; }
  std::string full_name() const {
    return container.empty() ? std::string(name) : std::string(container) + '|' + std::string(name);
  }
};

// Compares with an option word such as "NX", ignoring case.
bool is_word(std::string_view text, std::string_view word);

// A word in the form in which errors quote it: as a C string.
inline std::string_view up_to_zero(std::string_view text) { return text.substr(0, text.find('\0')); }

// The word as errors name a command.
std::string in_capitals(std::string_view word);

// The ACL categories that follow from a command's flags and group: "@read".
std::vector<std::string_view> categories(const Command& command);

// The families of commands, one file each.
std::span<const Command> acl_commands();
std::span<const Command> append_only_commands();
std::span<const Command> bit_commands();
std::span<const Command> bitfield_commands();
std::span<const Command> client_commands();
std::span<const Command> command_commands();
std::span<const Command> command_log_commands();
std::span<const Command> common_subsequence_commands();
std::span<const Command> configuration_commands();
std::span<const Command> connection_commands();
std::span<const Command> counter_commands();
std::span<const Command> debug_commands();
std::span<const Command> dump_commands();
std::span<const Command> expiry_commands();
std::span<const Command> field_combined_commands();
std::span<const Command> field_expiry_commands();
std::span<const Command> geo_commands();
std::span<const Command> geo_search_commands();
std::span<const Command> hash_commands();
std::span<const Command> hyperloglog_commands();
std::span<const Command> info_commands();
std::span<const Command> key_commands();
std::span<const Command> latency_commands();
std::span<const Command> list_commands();
std::span<const Command> list_blocking_commands();
std::span<const Command> memory_commands();
std::span<const Command> migrate_commands();
std::span<const Command> persistence_commands();
std::span<const Command> pubsub_commands();
std::span<const Command> replication_commands();
std::span<const Command> scan_commands();
std::span<const Command> scripting_commands();
std::span<const Command> server_commands();
std::span<const Command> set_commands();
std::span<const Command> sort_commands();
std::span<const Command> absent_feature_commands();
std::span<const Command> stream_commands();
std::span<const Command> stream_claim_commands();
std::span<const Command> stream_group_commands();
std::span<const Command> stream_info_commands();
std::span<const Command> stream_read_commands();
std::span<const Command> string_commands();
std::span<const Command> string_together_commands();
std::span<const Command> transaction_commands();
std::span<const Command> zset_commands();
std::span<const Command> zset_pop_commands();
std::span<const Command> zset_range_commands();
std::span<const Command> zset_store_commands();

// Every command, found by name in any case; null: no such command.
const Command* find_command(std::string_view name);
// The subcommand of that name, in any case; null: none.
const Command* find_subcommand(const Command& command, std::string_view name);
// The command that a request names, or its subcommand if it has some and there is a second word.
const Command* find_command(Arguments words);
// The command or subcommand of that name: "config|get".
const Command* find_full_name(std::string_view name);
std::span<const Command* const> all_commands();

}  // namespace weir::kv

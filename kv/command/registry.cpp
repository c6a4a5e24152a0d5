// The table of all commands, built once from the tables of the families.
#include <absl/container/flat_hash_map.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "kv/command/command.hpp"

namespace weir::kv {

namespace {

struct Registry {
  struct Slot {
    std::uint64_t head = 0;  // start of the name: most look-ups need one compare
    const Command* command = nullptr;
  };
  static constexpr std::size_t slot_count = 1024;  // a power of two, several times the number of commands

  std::deque<Command> rows;  // copies of the families' rows, with ids
  std::deque<std::vector<Command>> subcommands;
  std::uint16_t next_id = 0;
  std::vector<const Command*> commands;
  std::array<Slot, slot_count> slots;

  Registry() {
    for (auto family : {acl_commands(),
                        bit_commands(),
                        bitfield_commands(),
                        common_subsequence_commands(),
                        sort_commands(),
                        client_commands(),
                        command_commands(),
                        configuration_commands(),
                        connection_commands(),
                        counter_commands(),
                        expiry_commands(),
                        field_combined_commands(),
                        field_expiry_commands(),
                        hash_commands(),
                        info_commands(),
                        key_commands(),
                        list_commands(),
                        list_blocking_commands(),
                        latency_commands(),
                        pubsub_commands(),
                        scan_commands(),
                        server_commands(),
                        set_commands(),
                        string_commands(),
                        transaction_commands(),
                        zset_commands(),
                        zset_pop_commands(),
                        zset_range_commands(),
                        zset_store_commands(),
                        absent_feature_commands(),
                        scripting_commands(),
                        stream_commands(),
                        stream_claim_commands(),
                        stream_group_commands(),
                        stream_info_commands(),
                        stream_read_commands(),
                        debug_commands(),
                        dump_commands(),
                        persistence_commands(),
                        hyperloglog_commands(),
                        geo_commands(),
                        geo_search_commands(),
                        memory_commands(),
                        append_only_commands(),
                        replication_commands(),
                        migrate_commands(),
                        string_together_commands(),
                        command_log_commands()}) {
      for (const Command& row : family) {
        const Command& command = add(row);
        commands.push_back(&command);
        Slot* slot = probe(command.name);
        slot->head = head_of(command.name);
        slot->command = &command;
      }
    }
  }

  const Command& add(const Command& row) {
    Command& own = rows.emplace_back(row);
    own.id = next_id++;
    std::vector<Command>& subs = subcommands.emplace_back(row.subcommands.begin(), row.subcommands.end());
    for (Command& sub : subs) sub.id = next_id++;
    own.subcommands = subs;
    return own;
  }

  // The first eight bytes of a name, in lower case.
  static std::uint64_t head_of(std::string_view name) {
    return in_lower_case(name.size() >= 8 ? load<std::uint64_t>(name.data()) : load_short(name));
  }
  template <class Word>
  static std::uint64_t load(const char* at) {
    Word word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  // For names of at most seven bytes: two words, which overlap if necessary.
  static std::uint64_t load_short(std::string_view name) {
    const char* const begin = name.data();
    const std::size_t size = name.size();
    if (size >= 4)
      return load<std::uint32_t>(begin) | load<std::uint32_t>(begin + size - 4) << (size - 4) * 8;
    if (size >= 2)
      return load<std::uint16_t>(begin) | load<std::uint16_t>(begin + size - 2) << (size - 2) * 8;
    return size == 1 ? load<std::uint8_t>(begin) : 0;
  }
  // All eight bytes at once: the sums set a byte's highest bit if it is at least 'A', and if it is above 'Z'.
  static std::uint64_t in_lower_case(std::uint64_t bytes) {
    constexpr std::uint64_t each = 0x0101010101010101u;
    const std::uint64_t low = bytes & each * 0x7f;
    const std::uint64_t from_a = low + each * (0x80 - 'A');
    const std::uint64_t beyond_z = low + each * (0x80 - 'Z' - 1);
    const std::uint64_t upper = from_a & ~beyond_z & ~bytes & each * 0x80;
    return bytes | upper >> 2;
  }

  // The slot of that name, or the free slot for it.
  Slot* probe(std::string_view name) {
    const std::uint64_t head = head_of(name);
    std::size_t at = (head * 0x9e3779b97f4a7c15u >> 40) + name.size();
    for (;; ++at) {
      Slot& slot = slots[at % slot_count];
      if (slot.command == nullptr) return &slot;
      if (slot.head != head || slot.command->name.size() != name.size()) continue;
      if (name.size() <= 8 || strncasecmp(slot.command->name.data(), name.data(), name.size()) == 0)
        return &slot;
    }
  }
};

Registry& registry() {
  static Registry all;
  return all;
}

}  // namespace

const Command* find_command(std::string_view name) { return registry().probe(name)->command; }

const Command* find_command(Arguments words) {
  const Command* command = find_command(words[0].text);
  if (command == nullptr || command->subcommands.empty() || words.size() < 2) return command;
  return find_subcommand(*command, words[1].text);
}

const Command* find_full_name(std::string_view name) {
  const std::size_t bar = name.find('|');
  const Command* command = find_command(name.substr(0, bar));
  if (command == nullptr || bar == std::string_view::npos) return command;
  return find_subcommand(*command, name.substr(bar + 1));
}

const Command* find_subcommand(const Command& command, std::string_view name) {
  const auto sub =
      std::ranges::find_if(command.subcommands, [&](const Command& one) { return is_word(name, one.name); });
  return sub == command.subcommands.end() ? nullptr : &*sub;
}

std::span<const Command* const> all_commands() { return registry().commands; }

bool is_word(std::string_view text, std::string_view word) {
  return text.size() == word.size() && strncasecmp(text.data(), word.data(), text.size()) == 0;
}

std::string in_capitals(std::string_view word) {
  std::string out(word);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

}  // namespace weir::kv

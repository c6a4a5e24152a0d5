// The table of all commands, gathered from the families' tables once.
#include <absl/container/flat_hash_map.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "kv/commands/command.hpp"

namespace weir::kv {

namespace {

struct Registry {
  struct Slot {
    std::array<char, 8>
        head{};  // the first eight bytes of the name, so that most misses and hits need one compare
    const Command* command = nullptr;
  };
  static constexpr std::size_t slot_count = 1024;  // a power of two, several times the number of commands

  std::vector<const Command*> commands;
  std::array<Slot, slot_count> slots;

  Registry() {
    for (auto family :
         {access_commands(),     bit_commands(),         bitfield_commands(), common_subsequence_commands(),
          sort_commands(),       client_commands(),      command_commands(),  configuration_commands(),
          connection_commands(), counter_commands(),     expiry_commands(),   hash_commands(),
          info_commands(),       key_commands(),         list_commands(),     list_blocking_commands(),
          pubsub_commands(),     scan_commands(),        server_commands(),   set_commands(),
          string_commands(),     transaction_commands(), zset_commands(),     zset_pop_commands(),
          zset_range_commands(), zset_store_commands()}) {
      for (const Command& command : family) {
        commands.push_back(&command);
        Slot* slot = probe(command.name);
        slot->head = head_of(command.name);
        slot->command = &command;
      }
    }
  }

  static std::array<char, 8> head_of(std::string_view name) {
    std::array<char, 8> head{};
    for (std::size_t i = 0; i < std::min(name.size(), head.size()); ++i) {
      const char c = name[i];
      head[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    }
    return head;
  }

  // The slot of that name, or the free one where it would go.
  Slot* probe(std::string_view name) {
    const std::array<char, 8> head = head_of(name);
    std::uint64_t bits;
    std::memcpy(&bits, head.data(), sizeof bits);
    std::size_t at = (bits * 0x9e3779b97f4a7c15u >> 40) + name.size();
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
std::span<const Command* const> all_commands() { return registry().commands; }

bool is_word(std::string_view text, std::string_view word) {
  return text.size() == word.size() && strncasecmp(text.data(), word.data(), text.size()) == 0;
}

}  // namespace weir::kv

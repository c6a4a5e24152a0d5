// Which arguments of a command are keys, and what it does to them: Redis's key specifications, which COMMAND
// INFO tells and COMMAND GETKEYS follows.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kv/commands/command.hpp"

namespace weir::kv {

enum class KeyPlaces : std::uint8_t {
  range,    // from `begin` on, every `step`th
  counted,  // the argument at `begin` says how many keys come behind it
  keyword,  // behind the first `keyword` from `begin` on; with a `last` of -1 the first half of what comes
            // there
  unknown,  // the arguments themselves must be understood
};

struct KeySpec {
  std::string_view use;  // Redis's words, as "RW access update"; empty: no specification
  int begin = 0;
  int last = 0;  // of a range: behind `begin`; negative: from the end of the arguments
  int step = 1;
  KeyPlaces places = KeyPlaces::range;
  std::string_view keyword = {};
};

// In Redis's order. Their notes are left out.
std::span<const KeySpec> key_specs(const Command& command);

// What proxies may want to know about a command's answers, in words: "nondeterministic_output".
std::string_view tips(const Command& command);

// A key in a request, and what the request does to it.
struct KeyInUse {
  std::string_view key;
  std::string_view use;
};

// Whether any argument of the command can be a key (a shard channel is none).
bool has_keys(const Command& command);
// Nothing if the arguments contradict themselves.
std::optional<std::vector<KeyInUse>> keys_in(const Command& command, Arguments words);

}  // namespace weir::kv

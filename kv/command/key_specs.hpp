// Which arguments of a command are keys, and how it uses them: Redis's key specifications, which COMMAND INFO
// shows and COMMAND GETKEYS applies.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kv/command/command.hpp"

namespace weir::kv {

enum class KeyPlaces : std::uint8_t {
  range,    // from `begin` on, every `step`th argument
  counted,  // the argument at `begin` is the number of keys after it
  keyword,  // told to clients only: behind the first `keyword` at or after `begin`. A word before it may look
            // like it, so the command's options are walked instead (option_walk.hpp)
  unknown,  // clients cannot find them without asking
};

struct KeySpec {
  std::string_view use;  // Redis's words, such as "RW access update"; empty: no specification
  int begin = 0;
  int last = 0;  // of a range, relative to `begin`; negative: from the end of the arguments
  int step = 1;
  KeyPlaces places = KeyPlaces::range;
  std::string_view keyword = {};
};

// In Redis's order, without their notes.
std::span<const KeySpec> key_specs(const Command& command);

// What proxies may want to know about a command's replies, in words: "nondeterministic_output".
std::string_view tips(const Command& command);

// A key in a request, and how the request uses it.
struct KeyInUse {
  std::string_view key;
  std::string_view use;
};

// Whether any argument of the command can be a key (a shard channel is not one).
bool has_keys(const Command& command);
// nullopt: the command will refuse the arguments and touch no key.
std::optional<std::vector<KeyInUse>> keys_in(const Command& command, Arguments words);

}  // namespace weir::kv

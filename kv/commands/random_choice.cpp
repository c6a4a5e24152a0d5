#include "kv/commands/random_choice.hpp"

#include <limits>

namespace weir::kv {

bool parse_random_choice(const Call& call, std::string_view with, RandomChoice& choice) {
  if (call.count() == 2) return true;
  std::int64_t count = 0;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  // SRANDMEMBER checks its arguments in another order than the others.
  if (with.empty() && call.count() > 3) {
    call.syntax_error();
    return false;
  }
  if (!call.integer(2, count)) return false;
  if (count == std::numeric_limits<std::int64_t>::min()) {
    call.reply.error(
        "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
    return false;
  }
  if (call.count() > 4 || (call.count() == 4 && !is_word(call[3], with))) {
    call.syntax_error();
    return false;
  }
  choice.with_values = call.count() == 4;
  if (choice.with_values && (count < -most / 2 || count > most / 2)) {
    call.reply.error("ERR value is out of range");
    return false;
  }
  // Repetition has no natural limit; refuse unreasonable counts before they fill the memory.
  constexpr std::int64_t most_repeated = 1 << 24;
  if (count < -most_repeated) {
    call.reply.error("ERR value is out of range");
    return false;
  }
  choice.counted = true;
  choice.repeat = count < 0;
  choice.count = static_cast<std::size_t>(count < 0 ? -count : count);
  return true;
}

}  // namespace weir::kv

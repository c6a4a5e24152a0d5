#include "kv/commands/expiry_option.hpp"

#include <limits>

namespace weir::kv {

bool expiry_form(std::string_view word, ExpiryForm& form) {
  using enum ExpiryUnit;
  using enum ExpiryBase;
  if (is_word(word, "EX")) return form = {seconds, from_now}, true;
  if (is_word(word, "PX")) return form = {milliseconds, from_now}, true;
  if (is_word(word, "EXAT")) return form = {seconds, absolute}, true;
  if (is_word(word, "PXAT")) return form = {milliseconds, absolute}, true;
  return false;
}

bool expiry_time(const Call& call, std::size_t argument, ExpiryForm form, std::int64_t& at_ms) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t value = 0;
  if (!call.integer(argument, value)) return false;
  const std::int64_t scale = form.unit == ExpiryUnit::seconds ? 1000 : 1;
  const std::int64_t base = form.base == ExpiryBase::from_now ? call.now_ms : 0;
  if (value <= 0 || value > most / scale || value * scale > most - base) {
    call.reply.error("ERR invalid expire time in '" + call.command.full_name() + "' command");
    return false;
  }
  at_ms = value * scale + base;
  return true;
}

}  // namespace weir::kv

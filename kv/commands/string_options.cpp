#include "kv/commands/string_options.hpp"

namespace weir::kv {

namespace {

// A condition that another one does not exclude.
bool take_condition_word(const Call& call, std::size_t& at, OptionsFor keys, StringOptions& options) {
  using enum StringOptions::Exists;
  const std::string_view word = call[at];
  if (is_word(word, "NX") && options.exists != must && options.equal_at == 0)
    return options.exists = must_not, true;
  if (is_word(word, "XX") && options.exists != must_not && options.equal_at == 0)
    return options.exists = must, true;
  const bool compares = keys == OptionsFor::one_key && is_word(word, "IFEQ") && at + 1 < call.count();
  if (!compares || options.exists != any) return false;
  options.equal_at = ++at;
  return true;
}

bool take_expiry_word(const Call& call, std::size_t& at, StringOptions& options) {
  if (is_word(call[at], "KEEPTTL") && !options.expires) return options.keep_ttl = true;
  ExpiryForm form{};
  if (!expiry_form(call[at], form) || at + 1 >= call.count() || options.keep_ttl) return false;
  if (options.expires && (form.unit != options.form.unit || form.base != options.form.base)) return false;
  options.expires = true;
  options.form = form;
  options.time_at = ++at;
  return true;
}

}  // namespace

bool parse_string_options(const Call& call, std::size_t at, OptionsFor keys, StringOptions& options) {
  for (; at < call.count(); ++at) {
    if (keys == OptionsFor::one_key && is_word(call[at], "GET")) {
      options.get = true;
    } else if (!take_condition_word(call, at, keys, options) && !take_expiry_word(call, at, options)) {
      return false;
    }
  }
  return true;
}

}  // namespace weir::kv

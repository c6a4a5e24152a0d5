#include "kv/command/option_walk.hpp"

#include <algorithm>

#include "kv/command/command.hpp"

namespace weir::kv {

namespace {

constexpr OptionWord stream_reading_words[] = {
    {"BLOCK", 1}, {"COUNT", 1}, {"STREAMS", 1, OptionKeys::half, "RO access"}, {"GROUP", 2}, {"NOACK"},
};
// SORT_RO knows all but the last.
constexpr OptionWord sort_words[] = {
    {"ASC"},
    {"DESC"},
    {"ALPHA"},
    {"LIMIT", 2},
    {"BY", 1},
    {"GET", 1},
    {"STORE", 1, OptionKeys::value, "OW update"},
};
constexpr OptionWord georadius_words[] = {
    {"WITHDIST"},
    {"WITHHASH"},
    {"WITHCOORD"},
    {"ANY"},
    {"ASC"},
    {"DESC"},
    {"COUNT", 1},
    {"STORE", 1, OptionKeys::value, "OW update"},
    {"STOREDIST", 1, OptionKeys::value, "OW update"},
};
constexpr OptionWord migrate_words[] = {
    {"COPY"}, {"REPLACE"}, {"AUTH", 1}, {"AUTH2", 2}, {"KEYS", 0, OptionKeys::all, "RW access delete"},
};

}  // namespace

constexpr OptionGrammar stream_reading_options{1, stream_reading_words};
constexpr OptionGrammar sort_options{2, sort_words};
constexpr OptionGrammar sort_ro_options{2, std::span(sort_words).first(std::size(sort_words) - 1)};
constexpr OptionGrammar georadius_options{6, georadius_words};
constexpr OptionGrammar georadiusbymember_options{5, georadius_words};
constexpr OptionGrammar migrate_options{6, migrate_words};

bool OptionWalk::next() {
  if (next_ >= words_.size()) return false;
  const std::size_t behind = words_.size() - next_ - 1;
  const auto found = std::ranges::find_if(options_, [&](const OptionWord& option) {
    return option.values <= behind && is_word(words_[next_].text, option.word);
  });
  if (found == options_.end()) return false;
  option_ = &*found;
  value_ = next_ + 1;
  next_ = option_->takes_rest() ? words_.size() : value_ + option_->values;
  return true;
}

CountedKeys counted_keys_in(Arguments words, std::size_t at, std::size_t words_a_key) {
  using enum CountedKeys::Wrong;
  const auto count = at < words.size() ? parse_int(words[at].text) : std::nullopt;
  if (!count) return {number, {}, at};
  if (*count < 0) return {negative, {}, at};
  const std::size_t first = at + 1;
  if (static_cast<std::uint64_t>(*count) > (words.size() - first) / words_a_key) return {too_many, {}, at};
  const auto keys = words.subspan(first, static_cast<std::size_t>(*count) * words_a_key);
  return {nothing, keys, first + keys.size()};
}

}  // namespace weir::kv

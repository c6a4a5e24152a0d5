// The options behind a command's fixed arguments, such as "COUNT 5 STORE key", where an option decides which
// word is a key.
//
// There is one grammar and one walk for each of these commands. The command itself reads its options by it,
// and so does keys_in() (key_specs.hpp), which tells access control, client tracking, COMMAND GETKEYS and the
// gateway which keys a request names: they cannot take different words for keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kv/resp/request.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

enum class OptionKeys : std::uint8_t {
  none,
  value,  // its value is a key; if the option comes again, the later one counts
  all,    // all words behind it are keys
  half,   // the first half of the words behind it are keys
};

struct OptionWord {
  std::string_view word;
  std::size_t values = 0;  // how many words belong to it; at least as many if it takes the rest
  OptionKeys keys = OptionKeys::none;
  std::string_view use = {};  // of the keys, as in KeySpec

  bool takes_rest() const { return keys == OptionKeys::all || keys == OptionKeys::half; }
};

struct OptionGrammar {
  std::size_t begin;  // the place of the first option
  std::span<const OptionWord> options;
};

// Walks the options of a request one by one. A word that is no option, or that lacks its values, ends the
// walk.
class OptionWalk {
 public:
  OptionWalk(const OptionGrammar& grammar, Arguments words)
      : options_(grammar.options), words_(words), next_(grammar.begin) {}

  // Goes on to the next option. False: there is none, or the next word is wrong.
  bool next();
  bool wrong() const { return next_ < words_.size(); }

  const OptionWord& option() const { return *option_; }
  bool is(std::string_view word) const { return option_->word == word; }
  // The place of its first value.
  std::size_t value() const { return value_; }

 private:
  std::span<const OptionWord> options_;
  Arguments words_;
  std::size_t next_;
  std::size_t value_ = 0;
  const OptionWord* option_ = nullptr;
};

extern const OptionGrammar stream_reading_options;  // XREAD, XREADGROUP
extern const OptionGrammar sort_options;
extern const OptionGrammar sort_ro_options;
extern const OptionGrammar georadius_options;
extern const OptionGrammar georadiusbymember_options;
extern const OptionGrammar migrate_options;

// "numkeys key [key ...]", read from the place of the number on. Each key may have other words behind it.
struct CountedKeys {
  enum class Wrong : std::uint8_t { nothing, number, negative, too_many } wrong = Wrong::nothing;
  Arguments keys;       // with the words behind them
  std::size_t end = 0;  // the place behind them
};
CountedKeys counted_keys_in(Arguments words, std::size_t at, std::size_t words_a_key = 1);

}  // namespace weir::kv

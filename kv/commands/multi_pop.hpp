// Takes several elements from the first non-empty key: LMPOP, ZMPOP and their blocking forms.
//
// They differ in the collection, the names of its ends, and how an element is taken and written.
#pragma once

#include <algorithm>

#include "kv/commands/collection.hpp"

namespace weir::kv {

template <class End>
struct MultiPop {
  Arguments keys;
  End end{};
  std::int64_t count = 1;
};

// Parses "numkeys key ... END [COUNT n]" from argument `at`; replies with the error if it is wrong.
template <class End>
bool parse_multi_pop(const Call& call, std::size_t at, bool (*parse_end)(std::string_view, End&),
                     MultiPop<End>& pop) {
  if (!counted_keys(call, at, pop.keys)) return false;
  const bool named = at < call.count() && parse_end(call[at], pop.end);
  if (named) ++at;
  const bool counted = named && at + 2 == call.count() && is_word(call[at], "COUNT");
  if (!named || (at != call.count() && !counted)) {
    call.syntax_error();
    return false;
  }
  constexpr std::string_view too_few = "ERR count should be greater than 0";
  if (counted && !call.integer(at + 1, pop.count, too_few)) return false;
  if (pop.count > 0) return true;
  call.reply.error(too_few);
  return false;
}

// Takes from the first key with elements, and replies; returns false if no key has any. `take(collection,
// end)` takes and writes one element. `event` is reported for the key; `replayed` is the command that takes
// as many from a single key.
template <class Collection, class End, class Take>
bool multi_pop(const Call& call, const MultiPop<End>& pop, KeyEvent event, std::string_view replayed,
               Take take) {
  for (const Argument& key : pop.keys) {
    Collection* collection = nullptr;
    if (!blocked_read(call, key.text, collection)) return true;
    if (collection == nullptr) continue;
    const std::size_t n = std::min(static_cast<std::size_t>(pop.count), collection->size());
    call.reply.array(2);
    call.reply.bulk(key.text);
    call.reply.array(n);
    for (std::size_t i = 0; i < n; ++i) take(*collection, pop.end);
    call.replay_as({replayed, key, static_cast<std::int64_t>(n)});
    settle(call, key.text, *collection, event);
    return true;
  }
  return false;
}

}  // namespace weir::kv

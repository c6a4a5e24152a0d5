// What the list commands and their blocking forms share.
#pragma once

#include "kv/commands/collection.hpp"

namespace weir::kv {

enum class End : std::uint8_t { left, right };
bool parse_end(std::string_view word, End& end);

Bytes take_one(List& list, End end);
void put_one(List& list, End end, Bytes element);

// Moves one element from list call[1] to list call[2] and answers; null when there is none to move.
void move_element(const Call& call, End from, End to);

struct MultiPop {
  Arguments keys;
  End end;
  std::int64_t count;
};
// "numkeys key ... LEFT|RIGHT [COUNT n]" from argument `at`; answers when it is wrong.
bool parse_multi_pop(const Call& call, std::size_t at, MultiPop& pop);
// Takes from the first list that has elements and answers; false: none has.
bool multi_pop(const Call& call, const MultiPop& pop);

}  // namespace weir::kv

// What the list commands and their blocking forms share.
#pragma once

#include "kv/commands/collection.hpp"
#include "kv/commands/multi_pop.hpp"

namespace weir::kv {

bool parse_end(std::string_view word, End& end);

// Answers with the element there, and takes it out.
void reply_and_take(const Call& call, List& list, End end);

// The event that a push at this end is for the list's key.
KeyEvent pushed_at(End end);
KeyEvent popped_at(End end);

// Moves one element from list call[1] to list call[2] and answers; null when there is none to move. True: it
// moved one.
bool move_element(const Call& call, End from, End to);

// LMPOP's work: takes from the first list that has elements and answers; false: none has.
bool pop_from_first(const Call& call, const MultiPop<End>& pop);

}  // namespace weir::kv

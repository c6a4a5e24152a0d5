// Which place of a full queue is given up: one list of cases for each class that decides by
// waiting/shares.hpp.
#pragma once

#include <string>
#include <string_view>

namespace weir::waiting {

struct SharesCase {
  const char* name;
  // A letter: a place is taken by that source; the places are numbered from 0. A digit: that place moves on.
  std::string_view events;
  std::string_view leave;  // the places as they leave, until all have left
  bool moves() const { return events.find_first_of("0123456789") != events.npos; }
};

inline constexpr SharesCase shares_cases[] = {
    {"nothing_leaves_an_empty_queue", "", ""},
    {"oldest_of_one_source_leaves_first", "aaa", "012"},
    {"source_with_the_most_loses_one", "abbb", "1203"},
    {"source_with_few_loses_none_to_one_with_many", "cabbbbb", "2345016"},
    {"equals_lose_the_one_that_waited_longest", "abc", "012"},
    {"one_that_moved_outlives_one_that_did_not", "aa0", "10"},
    {"of_those_that_moved_the_one_longest_ago_leaves", "aaa210", "210"},
    {"moving_again_counts", "aaa0120", "120"},
    {"those_that_moved_leave_half_to_the_others", "aaaa012", "0132"},
    {"among_equal_sources_the_last_move_counts", "ab0", "10"},
    {"moving_does_not_save_a_source_with_many", "abbb123", "1203"},
};

}  // namespace weir::waiting

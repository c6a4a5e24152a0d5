// HRANDFIELD, SRANDMEMBER, ZRANDMEMBER: "[count [WITH...]]". A positive count asks for that many different
// elements, a negative one for that many that may repeat.
#pragma once

#include <algorithm>
#include <vector>

#include "kv/commands/command.hpp"

namespace weir::kv {

struct RandomChoice {
  bool counted = false;
  bool repeat = false;
  bool with_values = false;
  std::size_t count = 1;
};

// From argument 2 on; `with` is the option's name, empty if the command has none. Answers when it is wrong.
bool parse_random_choice(const Call& call, std::string_view with, RandomChoice& choice);

// Brings `count` random elements to the front (all, in their order, if there are no more); returns how many.
template <class T, class Random>
std::size_t shuffle_front(std::vector<T>& all, std::size_t count, Random&& random) {
  if (count >= all.size()) return all.size();
  for (std::size_t i = 0; i < count; ++i) std::swap(all[i], all[i + random() % (all.size() - i)]);
  return count;
}

}  // namespace weir::kv

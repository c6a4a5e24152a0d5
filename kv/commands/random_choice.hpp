// HRANDFIELD, SRANDMEMBER, ZRANDMEMBER: "[count [WITH...]]". A positive count asks for that many different
// elements, a negative one for elements that may repeat.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"

namespace weir::kv {

struct RandomChoice {
  bool counted = false;
  bool repeat = false;
  bool with_values = false;
  std::size_t count = 1;
};

// Parses from argument 2 on; `with` names the option, or is empty. Replies with the error if it is wrong.
bool parse_random_choice(const Call& call, std::string_view with, RandomChoice& choice);

// Moves `count` random elements to the front, or leaves all in order if there are no more; returns how many.
template <class T, class Random>
std::size_t shuffle_front(std::vector<T>& all, std::size_t count, Random&& random) {
  if (count >= all.size()) return all.size();
  for (std::size_t i = 0; i < count; ++i) std::swap(all[i], all[i + random() % (all.size() - i)]);
  return count;
}

// Chooses `count` different elements of `size`. If few are wanted they are drawn one by one until enough
// differ, so that the others, perhaps millions, are not visited. `Seen` is a set of the values by which
// key_of() identifies elements.
template <class Seen, class Draw, class KeyOf, class All, class Random>
auto choose_different(std::size_t size, std::size_t count, Draw draw, KeyOf key_of, All all,
                      Random&& random) {
  if (count > size / 3) {
    auto chosen = all();
    chosen.resize(shuffle_front(chosen, count, random));
    return chosen;
  }
  decltype(all()) chosen;
  chosen.reserve(count);
  Seen seen;
  while (chosen.size() < count) {
    auto one = draw();
    if (seen.insert(key_of(one)).second) chosen.push_back(std::move(one));
  }
  return chosen;
}

}  // namespace weir::kv

// Small programs of one queue pair and of a CPU at its target, whose outcomes tell devices apart.
//
// The model (rnic/weak/ordering.hpp) says which outcomes a device may have: all_outcomes() tries every order
// of steps. What a NIC does is compared with that.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rnic/weak/ordering.hpp"

namespace weir::rnic::test {

// Words: x and w are the initiator's, z, y and f the target's.
enum class Word : std::uint8_t { x, w, z, y, f };
inline constexpr std::size_t words = 5;
enum class Do : std::uint8_t { put, put_fenced, get, poll, store_1, load };

struct Instruction {
  Do what;
  Word to = Word::x, from = Word::x;  // load: `to` is not used; store_1: `from` is not
};
using Program = std::vector<Instruction>;

struct Litmus {
  const char* name;
  Program initiator, target;  // the target's only loads
  std::array<int, words> start;
  Word shown;                     // its value at the end; not used if something is loaded
  std::set<std::string> allowed;  // as the specification has it: digits of what was loaded, else of `shown`
};

// What a RDMA-TSO machine may do, after Ambal et al., OOPSLA 2024, without late placement.
inline std::vector<Litmus> litmus_tests() {
  using enum Do;
  using enum Word;
  return {
      {"put_then_store_to_its_source", {{put, z, x}, {store_1, x}}, {}, {0, 0, 9, 0, 0}, z, {"0", "1"}},
      {"put_poll_then_store_to_its_source",
       {{put, z, x}, {poll}, {store_1, x}},
       {},
       {0, 0, 9, 0, 0},
       z,
       {"0"}},
      {"put_of_what_a_get_brings", {{get, x, y}, {put, z, x}}, {}, {0, 0, 9, 1, 0}, z, {"0", "1"}},
      {"fenced_put_of_what_a_get_brings", {{get, x, y}, {put_fenced, z, x}}, {}, {0, 0, 9, 1, 0}, z, {"1"}},
      {"put_of_what_a_polled_get_brought", {{get, x, y}, {poll}, {put, z, x}}, {}, {0, 0, 9, 1, 0}, z, {"1"}},
      {"polled_put_is_there", {{put, z, x}, {poll}, {load, x, z}}, {}, {1, 0, 0, 0, 0}, z, {"1"}},
      {"unpolled_put_may_not_be_there", {{put, z, x}, {load, x, z}}, {}, {1, 0, 0, 0, 0}, z, {"0", "1"}},
      {"get_sees_the_put_before_it",
       {{put, z, x}, {get, w, z}, {poll}, {poll}},
       {},
       {1, 5, 0, 0, 0},
       w,
       {"1"}},
      {"get_may_see_the_put_behind_it",
       {{get, w, z}, {put, z, x}, {poll}, {poll}},
       {},
       {1, 5, 0, 0, 0},
       w,
       {"0", "1"}},
      {"get_does_not_see_a_fenced_put",
       {{get, w, z}, {put_fenced, z, x}, {poll}, {poll}},
       {},
       {1, 5, 0, 0, 0},
       w,
       {"0"}},
      {"puts_arrive_in_order",
       {{put, z, x}, {put, f, x}},
       {{load, x, f}, {load, x, z}},
       {1, 0, 0, 0, 0},
       z,
       {"00", "01", "11"}},
  };
}

// Every outcome that some order of steps has.
std::set<std::string> all_outcomes(const Litmus&);

}  // namespace weir::rnic::test

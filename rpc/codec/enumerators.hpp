// The names of an enum's values, found out without macros: how the compiler prints a value says whether it
// has one.
//
// Only values from first_enumerator on, enumerator_range of them, are looked at, and only of enums whose
// values all exist (scoped ones, and those that name their type). Threading: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::rpc {

inline constexpr int first_enumerator = -1;  // of unsigned ones 0
inline constexpr int enumerator_range = 64;

// Of every number in the range the compiler prints Type::name, or (Type)number where there is no name.
template <class E, E... Values>
std::string_view spelled_values() {
  return __PRETTY_FUNCTION__;
}

template <class E>
concept EveryNumberIsAValue = std::is_enum_v<E> && requires { E{0}; };

// "low = -1, high = 1" of what spelled_values() printed, for the numbers from `first` on; empty: it has no
// names.
std::string enumerators_text(std::string_view spelled, int first);

template <EveryNumberIsAValue E>
std::string enumerators_text() {
  using Number = std::underlying_type_t<E>;
  if constexpr (std::is_same_v<Number, bool>) {
    return enumerators_text(spelled_values<E, E{false}, E{true}>(), 0);
  } else {
    constexpr int first = std::is_signed_v<Number> ? first_enumerator : 0;
    return []<int... I>(std::integer_sequence<int, I...>) {
      return enumerators_text(spelled_values<E, static_cast<E>(first + I)...>(), first);
    }(std::make_integer_sequence<int, enumerator_range>());
  }
}

}  // namespace weir::rpc

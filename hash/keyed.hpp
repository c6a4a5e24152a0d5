// Keyed: the hash function for a table whose keys a peer may choose.
//
//   std::unordered_map<std::uint64_t, Call*, hash::Keyed> running;
//   std::unordered_map<std::string, int, hash::Keyed, std::equal_to<>> counts;  // looked up by string_view
//
// It hashes texts, integers, enumerations and pairs of them. Hash values differ from process to process, so
// never store or send anything that depends on them. Threading: any thread.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#include "hash/process_key.hpp"

namespace weir::hash {

struct Keyed {
  using is_transparent = void;

  std::size_t operator()(std::string_view text) const { return siphash(process_key(), text); }
  template <class T>
    requires(std::integral<T> || std::is_enum_v<T>)
  std::size_t operator()(T value) const {
    return siphash(process_key(), static_cast<std::uint64_t>(value));
  }
  template <class A, class B>
  std::size_t operator()(const std::pair<A, B>& pair) const {
    SipState state(process_key());
    state.add((*this)(pair.first));
    state.add((*this)(pair.second));
    return state.finish();
  }
};

}  // namespace weir::hash

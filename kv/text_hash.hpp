// Hashing texts by std::string_view. Debian's Abseil is built with a string_view of its own; given the
// standard one it takes std::hash, whose collisions anybody can choose, as no secret goes into it.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/hash/hash.h>
#include <absl/strings/string_view.h>

#include <functional>
#include <string>
#include <string_view>

namespace weir::kv {

// The same text for Abseil to hash.
inline absl::string_view to_hash(std::string_view text) { return {text.data(), text.size()}; }

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return absl::HashOf(to_hash(text)); }
};
using TextSet = absl::flat_hash_set<std::string, TextHash, std::equal_to<>>;
template <class T>
using TextMap = absl::flat_hash_map<std::string, T, TextHash, std::equal_to<>>;

}  // namespace weir::kv

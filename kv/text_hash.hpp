// Hashing std::string keys by std::string_view: Debian's Abseil is built with a string_view of its own, so
// its default hash for strings does not take the standard one.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/hash/hash.h>

#include <functional>
#include <string>
#include <string_view>

namespace weir::kv {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return absl::Hash<std::string_view>{}(text); }
};
using TextSet = absl::flat_hash_set<std::string, TextHash, std::equal_to<>>;
template <class T>
using TextMap = absl::flat_hash_map<std::string, T, TextHash, std::equal_to<>>;

}  // namespace weir::kv

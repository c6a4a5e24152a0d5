// Sets and maps of texts that clients choose: hashed with the process's secret (hash/keyed.hpp).
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <functional>
#include <string>

#include "hash/keyed.hpp"

namespace weir::kv {

using TextSet = absl::flat_hash_set<std::string, hash::Keyed, std::equal_to<>>;
template <class T>
using TextMap = absl::flat_hash_map<std::string, T, hash::Keyed, std::equal_to<>>;

}  // namespace weir::kv

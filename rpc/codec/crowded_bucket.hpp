// Hash tables that a peer fills: no bucket may get long.
//
// The standard's hash functions have no secret: an integer hashes to itself, a string by a Murmur hash, so a
// peer can choose keys that all fall into one bucket, and n such keys cost n^2 steps. A table whose hash is
// hash::Keyed accepts any keys. Any other table is watched while it is filled, and keys that crowd one bucket
// are refused: of keys that nobody chose, 64 do not meet in one bucket.
#pragma once

#include <concepts>
#include <cstddef>

#include "hash/keyed.hpp"

namespace weir::rpc {

template <class T>
concept HashTable = requires(const T& t, const typename T::key_type& key) {
  typename T::hasher;
  t.bucket_size(t.bucket(key));
};
template <class T>
concept OpenToFlooding = HashTable<T> && !std::same_as<typename T::hasher, hash::Keyed>;

constexpr std::size_t most_in_one_bucket = 64;
constexpr const char* crowded_bucket =
    "more than 64 keys fall into one bucket of an unordered container; with weir::hash::Keyed as its hash it "
    "takes any keys";

// Whether the bucket of a key that was just inserted holds more than allowed.
template <class T>
bool crowded([[maybe_unused]] const T& table, [[maybe_unused]] const typename T::key_type& key) {
  if constexpr (OpenToFlooding<T>) {
    return table.bucket_size(table.bucket(key)) > most_in_one_bucket;
  } else {
    return false;
  }
}

}  // namespace weir::rpc

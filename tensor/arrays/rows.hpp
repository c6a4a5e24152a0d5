// A part of an array: some of its rows, which are the elements of its first dimension. Rows are named in
// runs, in any order and also twice, and arrive one after another: 10 to 12 of an array (100, 64) are an
// array (3, 64), and the blocks 9, 3 and 7 of a paged cache are three runs of one.
//
// Between a peer and a hub, rows are extents of the version's bytes. Extents come from strangers: they are
// checked against the version before a byte is touched. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tensor/arrays/metadata.hpp"
#include "tensor/error.hpp"

namespace weir::tensor {

struct Rows {
  std::uint64_t first = 0;
  std::uint64_t count = 1;  // at least 1
  bool operator==(const Rows&) const = default;
};

// Bytes [offset, offset + bytes) of a version.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Extent&) const = default;
};

inline constexpr std::size_t most_extents = 1024;  // of one fetch, after neighbours were joined

struct Cut {
  Metadata metadata;  // of the rows alone
  std::vector<Extent> extents;
};
// bad_array: a tree, an array without dimensions, or a run of no rows; shape_mismatch: rows that the array
// does not have; too_much: more than most_extents runs.
Result<Cut> cut(const Metadata& whole, std::span<const Rows> rows);

// The sum of their bytes; nothing if one reaches beyond `whole`.
std::optional<std::uint64_t> bytes_of(std::span<const Extent> extents, std::uint64_t whole);

// Calls `each` with the piece, the offset in it, and the bytes there, for pieces of these sizes that make up
// a version. The extents must be within it.
void for_each_part(
    std::span<const std::uint64_t> pieces, std::span<const Extent> extents,
    const std::function<void(std::size_t piece, std::uint64_t offset, std::uint64_t bytes)>& each);

}  // namespace weir::tensor

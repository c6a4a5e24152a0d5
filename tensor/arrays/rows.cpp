#include "tensor/arrays/rows.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace weir::tensor {
namespace {

std::string text_of(const Rows& run) {
  const std::string first = std::to_string(run.first);
  return run.count == 1 ? "row " + first
                        : "rows " + first + " to " + std::to_string(run.first + (run.count - 1));
}

Result<void> check(const TensorInfo& array, const Rows& run) {
  if (run.count == 0) return fail(Errc::bad_array, "a run of no rows");
  const std::uint64_t there = array.shape[0];
  if (run.first < there && run.count <= there - run.first) return {};
  return fail(Errc::shape_mismatch, text_of(run) + " of " + description(array.dtype, array.shape) +
                                        ": it has " + std::to_string(there) + " rows");
}

// Joined with the one before where they touch.
void add(std::vector<Extent>& extents, const Extent& next) {
  if (next.bytes == 0) return;
  if (!extents.empty() && extents.back().offset + extents.back().bytes == next.offset)
    extents.back().bytes += next.bytes;
  else
    extents.push_back(next);
}

}  // namespace

Result<Cut> cut(const Metadata& whole, std::span<const Rows> rows) {
  if (whole.tensors.size() != 1) return fail(Errc::bad_array, "a tree has no rows; fetch it whole");
  const TensorInfo& array = whole.tensors[0];
  if (array.shape.empty()) return fail(Errc::bad_array, "an array without dimensions has no rows");
  TensorInfo row = array;
  row.shape[0] = 1;
  const std::uint64_t row_bytes = row.bytes().value_or(0);
  Cut made;
  std::uint64_t count = 0;
  for (const Rows& run : rows) {
    if (Result<void> sound = check(array, run); !sound) return std::unexpected(sound.error());
    count += run.count;
    add(made.extents, {array.offset + run.first * row_bytes, run.count * row_bytes});
    if (made.extents.size() > most_extents)
      return fail(Errc::too_much, "more than " + std::to_string(most_extents) +
                                      " runs of rows in one fetch; fetch them in several");
  }
  row.shape[0] = count;
  row.offset = 0;
  const std::optional<std::uint64_t> bytes = row.bytes();
  if (!bytes) return fail(Errc::too_much, "more bytes than a version may have");
  made.metadata.data_bytes = *bytes;
  made.metadata.tensors.push_back(std::move(row));
  return made;
}

std::optional<std::uint64_t> bytes_of(std::span<const Extent> extents, std::uint64_t whole) {
  std::uint64_t sum = 0;
  for (const Extent& each : extents) {
    if (each.bytes > whole || each.offset > whole - each.bytes) return std::nullopt;
    sum += each.bytes;
  }
  return sum;
}

void for_each_part(std::span<const std::uint64_t> pieces, std::span<const Extent> extents,
                   const std::function<void(std::size_t, std::uint64_t, std::uint64_t)>& each) {
  std::vector<std::uint64_t> ends;
  for (const std::uint64_t bytes : pieces) ends.push_back((ends.empty() ? 0 : ends.back()) + bytes);
  for (const Extent& extent : extents) {
    std::uint64_t at = extent.offset;
    const std::uint64_t end = extent.offset + extent.bytes;
    auto piece = static_cast<std::size_t>(std::ranges::upper_bound(ends, at) - ends.begin());
    for (; at < end && piece < ends.size(); ++piece) {
      const std::uint64_t until = std::min(end, ends[piece]);
      if (until > at) each(piece, at - (ends[piece] - pieces[piece]), until - at);
      at = until;
    }
  }
}

}  // namespace weir::tensor

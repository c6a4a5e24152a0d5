#include "tensor/hub/sums.hpp"

#include <algorithm>

#include "tensor/arrays/rows.hpp"

namespace weir::tensor {
namespace {

constexpr std::size_t step_bytes = std::size_t{1} << 20;  // a multiple of every element's size

}  // namespace

Result<void> can_be_added(const Metadata& metadata) {
  for (const TensorInfo& each : metadata.tensors)
    if (adder_of(each.dtype) == nullptr)
      return fail(Errc::bad_array, description(each.dtype, each.shape) + " cannot be added to another array");
  return {};
}

Sums::Stay Sums::enter(Addition addition) {
  const bool first = entries_.empty();
  entries_.emplace_back().addition = std::move(addition);
  if (first) begun_();
  return {*this, std::prev(entries_.end())};
}

Result<void> Sums::begin(Entry& entry) const {
  const Addition& addition = entry.addition;
  entry.begun = true;
  entry.base = catalogue_.find(addition.name).newest;
  if (entry.base == nullptr) return {};
  const Result<std::vector<std::byte>> block = entry.base->metadata_source->copy();
  if (!block) return std::unexpected(block.error());
  const Result<Metadata> metadata = parse_metadata(*block);
  if (!metadata) return std::unexpected(metadata.error());
  if (*metadata != *addition.metadata)
    return fail(Errc::shape_mismatch,
                "'" + addition.name + "' has another dtype, shape or other names than what is added to it");
  // The pieces of a version begin and end with its tensors, or between them.
  std::vector<Extent> extents;
  for (const TensorInfo& each : metadata->tensors)
    if (const std::uint64_t bytes = each.bytes().value_or(0); bytes > 0)
      extents.push_back({each.offset, bytes});
  const std::span<const Source::Piece> pieces = entry.base->data->pieces();
  auto tensor = metadata->tensors.begin();
  std::uint64_t at = 0;  // in the tensor
  for_each_part(
      entry.base->data->sizes(), extents, [&](std::size_t piece, std::uint64_t offset, std::uint64_t bytes) {
        while (at >= tensor->bytes().value_or(0)) at = 0, ++tensor;
        entry.parts.push_back({adder_of(tensor->dtype), addition.bytes.subspan(tensor->offset + at, bytes),
                               pieces[piece].subspan(offset, bytes)});
        at += bytes;
      });
  std::ranges::reverse(entry.parts);
  return {};
}

void Sums::step() {
  if (entries_.empty()) return;
  Entry& entry = entries_.front();
  // done() may destroy the entry.
  const auto end = [&entry](Result<std::uint64_t> how) {
    const auto done = std::move(entry.addition.done);
    done(std::move(how));
  };
  if (!entry.begun)
    if (const Result<void> begun = begin(entry); !begun) return end(std::unexpected(begun.error()));
  for (std::size_t left = step_bytes; left > 0 && !entry.parts.empty();) {
    Part& part = entry.parts.back();
    const std::size_t bytes = std::min(left, part.to.size());
    part.add(part.to.first(bytes), part.from.first(bytes));
    part.to = part.to.subspan(bytes);
    part.from = part.from.subspan(bytes);
    if (part.to.empty()) entry.parts.pop_back();
    left -= bytes;
  }
  if (!entry.parts.empty()) return;
  const std::uint64_t base = entry.base != nullptr ? entry.base->number : 0;
  entry.base = nullptr;  // it has no reader here any more
  end(base);
}

}  // namespace weir::tensor

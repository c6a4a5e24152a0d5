#include "tensor/arrays/tree.hpp"

#include <cstring>
#include <utility>

#include "tensor/memory/shared_memory.hpp"

namespace weir::tensor {
namespace {

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + tensor_alignment - 1) / tensor_alignment * tensor_alignment;
}

// What the Source of a tree owns.
struct Owners {
  std::shared_ptr<const void> given;
  SharedMemory packed;
};

}  // namespace

Result<Tree> make_tree(std::span<const TensorView> tensors, std::shared_ptr<const void> owner) {
  Tree tree;
  std::vector<std::uint64_t> sizes;
  std::uint64_t packed_bytes = 0;
  for (const TensorView& each : tensors) {
    TensorInfo info{each.name, each.dtype, each.shape, tree.metadata.data_bytes};
    const std::optional<std::uint64_t> bytes = info.dtype.valid() ? info.bytes() : std::nullopt;
    if (!bytes) return fail(Errc::bad_array, "the dtype or shape of '" + each.name + "' cannot be published");
    if (*bytes > 0 && each.data == nullptr) return fail(Errc::bad_array, "'" + each.name + "' has no data");
    sizes.push_back(*bytes);
    // The last tensor is padded, too, so that neighbours in the packed memory stay neighbours.
    tree.metadata.data_bytes += tensors.size() == 1 ? *bytes : aligned(*bytes);
    if (tree.metadata.data_bytes > most_data_bytes) return fail(Errc::bad_array, "more than 64 TiB");
    if (tensors.size() > 1 && *bytes < small_tensor_bytes) packed_bytes += aligned(*bytes);
    tree.metadata.tensors.push_back(std::move(info));
  }

  auto owners = std::make_shared<Owners>();
  owners->given = std::move(owner);
  if (tensors.size() > 1) {
    Result<SharedMemory> packed = SharedMemory::map(packed_bytes + tensor_alignment);  // + zeros to pad with
    if (!packed) return std::unexpected(packed.error());
    owners->packed = std::move(*packed);
  }
  std::vector<Source::Piece> pieces;
  std::span<std::byte> room = owners->packed.bytes();
  const std::span<const std::byte> zeros = room.subspan(tensors.size() > 1 ? packed_bytes : 0);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(sizes[i]);
    const auto* data = static_cast<const std::byte*>(tensors[i].data);
    if (tensors.size() > 1 && bytes < small_tensor_bytes) {
      if (bytes > 0) std::memcpy(room.data(), data, bytes);
      tree.packed_bytes += bytes;
      pieces.push_back(room.first(aligned(bytes)));
      room = room.subspan(aligned(bytes));
      continue;
    }
    pieces.emplace_back(data, bytes);
    if (tensors.size() > 1) pieces.push_back(zeros.first(aligned(bytes) - bytes));
  }
  tree.data = std::make_shared<const Source>(std::move(pieces), std::move(owners));
  return tree;
}

}  // namespace weir::tensor

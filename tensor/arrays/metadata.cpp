#include "tensor/arrays/metadata.hpp"

#include "tensor/arrays/little_endian.hpp"

namespace weir::tensor {
namespace {

constexpr std::uint32_t magic = 0x444d5457;  // "WTMD"
constexpr std::size_t smallest_entry = 16;

// Why the metadata are invalid; empty if they are valid.
std::string fault(const Metadata& metadata) {
  if (metadata.tensors.size() > most_tensors)
    return std::to_string(metadata.tensors.size()) + " tensors, more than " + std::to_string(most_tensors);
  if (metadata.data_bytes > most_data_bytes)
    return std::to_string(metadata.data_bytes) + " bytes, more than 64 TiB";
  std::uint64_t end = 0;
  for (const TensorInfo& each : metadata.tensors) {
    const std::string which = "tensor '" + each.name + "'";
    if (each.name.size() > most_name_bytes) return "a name of more than 1024 bytes";
    if (!each.dtype.valid()) return which + " has a dtype that is not of whole bytes";
    if (each.shape.size() > most_dimensions) return which + " has more than 64 dimensions";
    const std::optional<std::uint64_t> bytes = each.bytes();
    if (!bytes) return which + " has a shape whose size overflows";
    if (each.offset < end) return which + " overlaps the one before it";
    if (each.offset > metadata.data_bytes || *bytes > metadata.data_bytes - each.offset)
      return which + " ends beyond the version's bytes";
    end = each.offset + *bytes;
  }
  return {};
}

}  // namespace

std::optional<std::uint64_t> TensorInfo::bytes() const {
  std::uint64_t total = dtype.bytes();
  for (const std::uint64_t extent : shape) {
    if (extent == 0) return 0;
  }
  for (const std::uint64_t extent : shape) {
    if (extent > most_data_bytes / total) return std::nullopt;
    total *= extent;
  }
  return total;
}

std::string description(const DType& dtype, std::span<const std::uint64_t> shape) {
  static constexpr const char* kinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  std::string text = dtype.code < std::size(kinds) ? kinds[dtype.code] : "kind" + std::to_string(dtype.code);
  if (text != "bool" || dtype.bits != 8) text += std::to_string(dtype.bits);
  if (dtype.lanes > 1) text += "x" + std::to_string(dtype.lanes);
  text += " (";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + ")";
}

Result<std::vector<std::byte>> encode(const Metadata& metadata) {
  if (const std::string why = fault(metadata); !why.empty()) return fail(Errc::bad_array, why);
  Writer out;
  out.number(magic).number(static_cast<std::uint32_t>(metadata.tensors.size())).number(metadata.data_bytes);
  for (const TensorInfo& each : metadata.tensors) {
    out.number(each.dtype.code).number(each.dtype.bits).number(each.dtype.lanes);
    out.number(static_cast<std::uint16_t>(each.shape.size()))
        .number(static_cast<std::uint16_t>(each.name.size()))
        .number(each.offset);
    for (const std::uint64_t extent : each.shape) out.number(extent);
    out.text(each.name);
  }
  std::vector<std::byte> block = out.take();
  if (block.size() > most_metadata_bytes)
    return fail(Errc::bad_array, "names and shapes of more than 256 MiB: publish several smaller trees");
  return block;
}

Result<Metadata> parse_metadata(std::span<const std::byte> block) {
  Reader in(block);
  Metadata metadata;
  if (in.number<std::uint32_t>() != magic) return fail(Errc::protocol, "metadata of another kind");
  const auto tensors = in.number<std::uint32_t>();
  metadata.data_bytes = in.number<std::uint64_t>();
  // Checked before allocating: each tensor takes at least smallest_entry bytes of the block.
  if (tensors > most_tensors || tensors > in.left() / smallest_entry)
    return fail(Errc::protocol, "metadata claims more tensors than it holds");
  for (std::uint32_t i = 0; i < tensors; ++i) {
    TensorInfo& each = metadata.tensors.emplace_back();
    each.dtype.code = in.number<std::uint8_t>();
    each.dtype.bits = in.number<std::uint8_t>();
    each.dtype.lanes = in.number<std::uint16_t>();
    if (!each.dtype.valid()) return fail(Errc::protocol, "metadata with a dtype that is not of whole bytes");
    const auto dimensions = in.number<std::uint16_t>();
    const auto name_bytes = in.number<std::uint16_t>();
    each.offset = in.number<std::uint64_t>();
    if (dimensions > most_dimensions || name_bytes > most_name_bytes)
      return fail(Errc::protocol, "metadata with a name or a shape that is too long");
    each.shape.resize(dimensions);
    for (std::uint64_t& extent : each.shape) extent = in.number<std::uint64_t>();
    each.name = in.text(name_bytes);
    if (!in.ok()) return fail(Errc::protocol, "metadata of the wrong length");
  }
  if (!in.finished()) return fail(Errc::protocol, "metadata of the wrong length");
  if (const std::string why = fault(metadata); !why.empty()) return fail(Errc::protocol, "metadata: " + why);
  return metadata;
}

}  // namespace weir::tensor

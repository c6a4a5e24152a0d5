#include "rpc/metadata.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

#include "rpc/codec/msgpack.hpp"

namespace weir::rpc {

namespace {
constexpr std::size_t length_bytes = 2;
}

Result<void> append(Bytes& to, const Metadata& metadata) {
  const std::size_t begin = to.size();
  to.grow(length_bytes);
  MsgpackWriter writer(to);
  writer.map(metadata.size());
  std::size_t contents = 0;
  for (const auto& [name, value] : metadata) contents += name.size() + value.size();
  if (contents <= max_metadata_bytes && metadata.size() <= max_metadata_entries)
    for (const auto& [name, value] : metadata) {
      writer.text(name);
      writer.text(value);
    }
  const std::size_t bytes = to.size() - begin - length_bytes;
  if (contents > max_metadata_bytes || metadata.size() > max_metadata_entries || bytes > max_metadata_bytes) {
    to.truncate(begin);
    return fail(Errc::too_large, "metadata of " + std::to_string(metadata.size()) + " entries and " +
                                     std::to_string(contents) +
                                     " bytes: " + std::to_string(max_metadata_entries) + " and " +
                                     std::to_string(max_metadata_bytes) + " may go with a call");
  }
  const auto length = static_cast<std::uint16_t>(bytes);
  std::memcpy(to.data() + begin, &length, sizeof length);
  return {};
}

Result<std::size_t> read_metadata(std::span<const std::byte> body, Metadata& into) {
  std::uint16_t length = 0;
  if (body.size() < sizeof length) return fail(Errc::bad_arguments, "metadata that is cut off");
  std::memcpy(&length, body.data(), sizeof length);
  if (length > max_metadata_bytes || length > body.size() - sizeof length)
    return fail(Errc::bad_arguments, "metadata that is cut off, or more than may go with a call");
  MsgpackReader reader(body.subspan(sizeof length, length));
  std::size_t entries = 0;
  if (!reader.map(entries) || entries > max_metadata_entries)
    return fail(Errc::bad_arguments, "metadata that is no map, or has more entries than may go with a call");
  for (std::size_t i = 0; i < entries; ++i) {
    std::string_view name, value;
    if (!reader.text(name) || !reader.text(value))
      return fail(Errc::bad_arguments, "metadata that is no text");
    into.insert_or_assign(std::string(name), std::string(value));
  }
  if (!reader.at_end()) return fail(Errc::bad_arguments, "metadata with more behind it");
  return sizeof length + length;
}

std::size_t memory_of(const Metadata& metadata) {
  constexpr std::size_t node = 144;
  std::size_t bytes = 0;
  for (const auto& [name, value] : metadata) bytes += node + name.size() + value.size();
  return bytes;
}

}  // namespace weir::rpc

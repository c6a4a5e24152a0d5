#include "rnic/ethernet/rx_hash.hpp"

#include <cstring>

namespace weir::rnic {
namespace {

bool has_fields(std::uint32_t fields, const FrameKey& frame) {
  using namespace rx_field;
  if (fields == 0) return false;
  if ((fields & ipv4) && frame.ip_version != 4) return false;
  if ((fields & ipv6) && frame.ip_version != 6) return false;
  if ((fields & tcp) && frame.protocol != protocol_tcp) return false;
  if ((fields & udp) && frame.protocol != protocol_udp) return false;
  return !(fields & (tcp | udp)) || frame.fragment == 0;
}

// The input of the hash, gathered field by field.
class Input {
 public:
  void add(const void* field, std::size_t bytes) {
    std::memcpy(bytes_.data() + length_, field, bytes);
    length_ += bytes;
  }
  std::span<const std::uint8_t> bytes() const { return std::span(bytes_).first(length_); }

 private:
  std::array<std::uint8_t, max_toeplitz_input_bytes> bytes_{};
  std::size_t length_ = 0;
};

}  // namespace

std::optional<std::uint32_t> rx_hash(const RxHash& hash, const FrameKey& frame) {
  using namespace rx_field;
  const std::uint32_t fields = hash.fields;
  if (!has_fields(fields, frame)) return std::nullopt;
  const std::size_t address_bytes = frame.ip_version == 4 ? 4 : 16;
  Input input;
  if (fields & (source_ipv4 | source_ipv6)) input.add(frame.source_ip, address_bytes);
  if (fields & (destination_ipv4 | destination_ipv6)) input.add(frame.destination_ip, address_bytes);
  if (fields & (source_port_tcp | source_port_udp)) input.add(&frame.source_port_be, 2);
  if (fields & (destination_port_tcp | destination_port_udp)) input.add(&frame.destination_port_be, 2);
  return toeplitz_hash(hash.key, input.bytes());
}

}  // namespace weir::rnic

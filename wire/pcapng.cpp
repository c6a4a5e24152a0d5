#include "wire/pcapng.hpp"

#include <algorithm>

namespace weir::wire {
namespace {

constexpr std::uint32_t section_header = 0x0a0d0d0a, interface_description = 1, enhanced_packet = 6;
constexpr std::uint16_t end_of_options = 0, comment_option = 1, interface_name = 2, time_resolution = 9,
                        user_application = 4;

void put_le(std::vector<std::byte>& to, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

void put_padded(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
  to.resize(to.size() + (4 - bytes.size() % 4) % 4);
}

void put_option(std::vector<std::byte>& to, std::uint16_t code, std::string_view value) {
  put_le(to, code, 2);
  put_le(to, value.size(), 2);
  put_padded(to, std::as_bytes(std::span(value)));
}

// A block carries its length at both ends.
std::size_t begin_block(std::vector<std::byte>& to, std::uint32_t type) {
  const std::size_t start = to.size();
  put_le(to, type, 4);
  put_le(to, 0, 4);
  return start;
}
void end_block(std::vector<std::byte>& to, std::size_t start) {
  const std::uint64_t length = to.size() - start + 4;
  put_le(to, length, 4);
  for (std::size_t i = 0; i < 4; ++i) to[start + 4 + i] = static_cast<std::byte>(length >> (8 * i));
}

}  // namespace

std::vector<std::byte> pcapng_section(std::string_view application, std::string_view interface) {
  std::vector<std::byte> to;
  std::size_t block = begin_block(to, section_header);
  put_le(to, 0x1a2b3c4d, 4);
  put_le(to, 1, 2);
  put_le(to, 0, 2);
  put_le(to, ~std::uint64_t{0}, 8);  // a section of unknown length
  put_option(to, user_application, application);
  put_option(to, end_of_options, {});
  end_block(to, block);
  block = begin_block(to, interface_description);
  constexpr std::uint16_t ethernet = 1;
  put_le(to, ethernet, 2);
  put_le(to, 0, 2);
  put_le(to, 0, 4);  // no limit on the bytes kept per packet
  put_option(to, interface_name, interface);
  put_option(to, time_resolution, "\x09");  // 10^-9 s
  put_option(to, end_of_options, {});
  end_block(to, block);
  return to;
}

void append_pcapng_packet(std::vector<std::byte>& to, std::uint64_t time_ns,
                          std::span<const std::byte> packet, std::size_t snap, std::string_view comment) {
  const std::size_t block = begin_block(to, enhanced_packet);
  const std::size_t kept = std::min(packet.size(), snap);
  put_le(to, 0, 4);
  put_le(to, time_ns >> 32, 4);
  put_le(to, time_ns & 0xffffffff, 4);
  put_le(to, kept, 4);
  put_le(to, packet.size(), 4);
  put_padded(to, packet.first(kept));
  if (!comment.empty()) {
    put_option(to, comment_option, comment);
    put_option(to, end_of_options, {});
  }
  end_block(to, block);
}

}  // namespace weir::wire

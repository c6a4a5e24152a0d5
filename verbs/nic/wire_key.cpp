#include "verbs/nic/wire_key.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <string>
#include <string_view>

#include "link/secret_file.hpp"

namespace weir::verbs {
namespace {

constexpr std::size_t key_bytes = 16, key_digits = 2 * key_bytes;
constexpr std::string_view space = " \t\r\n";

std::optional<hash::SipKey> key_of(std::string_view digits) {
  if (digits.size() != key_digits) return std::nullopt;
  std::array<std::uint8_t, key_bytes> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* const at = digits.data() + 2 * i;
    const auto read = std::from_chars(at, at + 2, bytes[i], 16);
    if (read.ec != std::errc() || read.ptr != at + 2) return std::nullopt;
  }
  const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(bytes);
  return hash::SipKey{halves[0], halves[1]};
}

std::unexpected<link::Error> refused(const std::string& why) {
  return std::unexpected(
      link::Error{std::errc::invalid_argument,
                  std::string(wire_key_variable) + ": " + why +
                      "; name a file that holds 32 hexadecimal digits (openssl rand -hex 16), or unset it"});
}

}  // namespace

link::Result<std::optional<hash::SipKey>> read_wire_key(const char* setting) {
  if (setting == nullptr) return std::nullopt;
  if (const auto key = key_of(setting)) return key;
  const auto text = link::read_secret_file(setting);
  if (!text) return refused(text.error());
  std::string_view digits(*text);
  digits = digits.substr(0, digits.find_last_not_of(space) + 1);
  if (const auto key = key_of(digits)) return key;
  return refused(std::string(setting) + " holds something else");
}

}  // namespace weir::verbs

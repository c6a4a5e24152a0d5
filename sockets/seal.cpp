#include "sockets/seal.hpp"

#include <array>
#include <string_view>

namespace weir::sockets {

hash::SipKey sealing_key(hash::SipKey secret, Speaker speaker, const FarRequest::End& asker,
                         const FarRequest::End& asked) {
  std::array<char, 2 + 2 * (16 + 2)> text{};
  std::size_t at = 1;  // tells the two halves of the key apart
  const auto add = [&](std::uint8_t byte) { text[at++] = static_cast<char>(byte); };
  add(static_cast<std::uint8_t>(speaker));
  for (const auto* end : {&asker, &asked}) {
    for (const std::uint8_t byte : end->address) add(byte);
    add(static_cast<std::uint8_t>(end->port >> 8));
    add(static_cast<std::uint8_t>(end->port));
  }
  const auto half = [&](char which) {
    text[0] = which;
    return hash::siphash(secret, std::string_view(text.data(), text.size()));
  };
  return {.first = half(1), .second = half(2)};
}

}  // namespace weir::sockets

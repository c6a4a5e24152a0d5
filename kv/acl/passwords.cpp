#include "kv/acl/passwords.hpp"

#include <openssl/sha.h>

#include <algorithm>
#include <array>

namespace weir::kv::acl {

std::string password_digest(std::string_view password) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(password.data()), password.size(), digest.data());
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) text.append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
  return text;
}

bool is_digest(std::string_view text) {
  return text.size() == std::size_t{SHA256_DIGEST_LENGTH} * 2 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool contains_digest(const std::vector<std::string>& digests, std::string_view digest) {
  unsigned found = 0;
  for (const std::string& one : digests) {
    unsigned difference = one.size() == digest.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(one.size(), digest.size()); ++i)
      difference |= static_cast<unsigned char>(one[i] ^ digest[i]);
    found |= difference == 0 ? 1U : 0U;
  }
  return found != 0;
}

}  // namespace weir::kv::acl

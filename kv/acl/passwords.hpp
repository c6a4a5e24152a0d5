// Passwords as they are stored: the SHA-256 of each, in hexadecimal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::kv::acl {

std::string password_digest(std::string_view password);
bool is_digest(std::string_view text);

// Whether `digest` is one of them. The time taken depends neither on which one nor on common prefixes.
bool contains_digest(const std::vector<std::string>& digests, std::string_view digest);

}  // namespace weir::kv::acl

#include "sockets/secret.hpp"

#include "link/secret_file.hpp"

namespace weir::sockets {

std::expected<hash::SipKey, std::string> read_secret(const std::string& path) {
  const auto bytes = link::read_secret_file(path);
  if (!bytes) return std::unexpected(bytes.error());
  return hash::SipKey{.first = hash::siphash({.first = 1, .second = 0}, *bytes),
                      .second = hash::siphash({.first = 2, .second = 0}, *bytes)};
}

}  // namespace weir::sockets

#include "sockets/far_address.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace weir::sockets {
namespace {

constexpr std::array<std::uint8_t, 12> v4_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

sockaddr_storage sockaddr_of(const FarAddress& at) {
  sockaddr_storage all{};
  const auto port = htons(static_cast<std::uint16_t>(at.port));
  if (std::equal(v4_prefix.begin(), v4_prefix.end(), at.address.begin())) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    std::memcpy(&v4.sin_addr, at.address.data() + v4_prefix.size(), 4);
    std::memcpy(&all, &v4, sizeof v4);
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = port;
    std::memcpy(&v6.sin6_addr, at.address.data(), 16);
    std::memcpy(&all, &v6, sizeof v6);
  }
  return all;
}

std::array<std::uint8_t, 16> address_bytes(const sockaddr* address) {
  std::array<std::uint8_t, 16> bytes{};
  if (address->sa_family == AF_INET) {
    std::copy(v4_prefix.begin(), v4_prefix.end(), bytes.begin());
    std::memcpy(bytes.data() + v4_prefix.size(), &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  } else if (address->sa_family == AF_INET6) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
  }
  return bytes;
}

}  // namespace weir::sockets

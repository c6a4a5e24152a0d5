#include "sockets/networks.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace weir::sockets {
namespace {

constexpr unsigned v4_prefix_bits = 96;

}  // namespace

std::expected<Networks::Network, std::string> Networks::parse_one(std::string_view word) {
  const auto slash = word.find('/');
  const std::string address(word.substr(0, slash));
  Network network;
  in_addr v4{};
  unsigned most_bits = 128;
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    network.address[10] = network.address[11] = 0xff;
    std::memcpy(network.address.data() + 12, &v4, sizeof v4);
    most_bits = 32;
  } else if (::inet_pton(AF_INET6, address.c_str(), network.address.data()) != 1) {
    return std::unexpected("'" + std::string(word) + "' is no network: it begins with no IP address");
  }
  network.bits = most_bits;
  if (slash != std::string_view::npos) {
    const auto number = word.substr(slash + 1);
    const auto read = std::from_chars(number.data(), number.data() + number.size(), network.bits);
    if (read.ec != std::errc{} || read.ptr != number.data() + number.size() || network.bits > most_bits)
      return std::unexpected("'" + std::string(word) +
                             "' is no network: behind the slash is a number up to " +
                             std::to_string(most_bits));
  }
  if (most_bits == 32) network.bits += v4_prefix_bits;
  return network;
}

std::expected<Networks, std::string> Networks::parse(std::string_view text) {
  Networks all;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    const auto network = parse_one(text.substr(0, end));
    if (!network) return std::unexpected(network.error());
    if (all.networks_.size() == most)
      return std::unexpected("more than " + std::to_string(most) + " networks");
    all.networks_.push_back(*network);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

bool Networks::have(const std::array<std::uint8_t, 16>& address) const {
  return std::ranges::any_of(networks_, [&](const Network& one) {
    for (unsigned bit = 0; bit < one.bits; ++bit) {
      const auto mask = static_cast<std::uint8_t>(0x80u >> (bit % 8));
      if ((one.address[bit / 8] & mask) != (address[bit / 8] & mask)) return false;
    }
    return true;
  });
}

}  // namespace weir::sockets

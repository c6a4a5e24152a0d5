// How much is looked at of what strangers send: so much a second of each network (an IPv4 /24, an IPv6 /48),
// and of all together.
//
// A table of fixed size: networks share a place by a keyed hash, so that none is forgotten under a flood and
// nobody can choose whose place it shares. Each place is one number, the time by which what was taken is paid
// for (the generic cell rate algorithm). Peers pay for their own network only: forged sources, which cost an
// attacker nothing, cannot use up what they need.
//
// Not thread-safe. Time is passed in.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "hash/siphash.hpp"
#include "link/udp/socket_address.hpp"
#include "link/udp/udp_route.hpp"

namespace weir::link {

class SourceBudget {
 public:
  struct Rate {
    std::uint64_t per_second = 1, at_once = 1;
  };
  SourceBudget(Rate of_network, Rate of_all, hash::SipKey key)
      : of_network_(of_network), of_all_(of_all), key_(key) {}

  enum class Is : bool { stranger, peer };
  // False: no more now.
  bool take(const IpAddress& source, Is what, std::uint64_t now_ns) {
    if (!take(networks_[place_of(source)], of_network_, now_ns)) return false;
    return what == Is::peer || take(all_, of_all_, now_ns);
  }

 private:
  static constexpr std::size_t places = 1024;
  static constexpr std::uint64_t second_ns = 1'000'000'000;

  static bool take(std::uint64_t& paid_until_ns, const Rate& rate, std::uint64_t now_ns) {
    const std::uint64_t cost_ns = second_ns / rate.per_second;
    const std::uint64_t from = paid_until_ns > now_ns ? paid_until_ns : now_ns;
    if (from + cost_ns > now_ns + rate.at_once * cost_ns) return false;
    paid_until_ns = from + cost_ns;
    return true;
  }
  std::size_t place_of(const IpAddress& source) const {
    constexpr std::size_t v6_network_bytes = 6;
    std::uint64_t network = 0;
    std::memcpy(&network, source.data(), v6_network_bytes);
    if (is_v4(source)) std::memcpy(&network, source.data() + mapped.size(), 3);
    return hash::siphash(key_, network) % places;
  }

  const Rate of_network_, of_all_;
  const hash::SipKey key_;
  std::array<std::uint64_t, places> networks_{};
  std::uint64_t all_ = 0;
};

}  // namespace weir::link

// A keyed check in the place of the ICRC: who does not know the secret cannot make a packet that is taken,
// nor change one (sRDMA: K. Taranov, B. Rothenberger, A. Perrig, T. Hoefler, USENIX ATC 2020).
//
// It is the lower half of SipHash-2-4 over what the ICRC covers: addresses, ports and length, then everything
// from the BTH on, with the bits that switches change replaced by ones. IPv4's ID, which a socket does not
// see, is left out. A guess is right once in 2^32. Nothing here detects a packet that was recorded and is
// sent again: the transport's packet sequence numbers do, as far as they do. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hash/siphash.hpp"

namespace weir::wire {

class KeyedIcrc {
 public:
  using Address = std::array<std::uint8_t, 16>;
  // For all packets from one address and port to another.
  KeyedIcrc(const hash::SipKey& key, const Address& source, const Address& destination,
            std::uint16_t source_port, std::uint16_t destination_port);
  std::uint32_t of(std::span<const std::byte> from_bth) const;

 private:
  hash::SipMacState state_;  // after addresses and ports
};

}  // namespace weir::wire

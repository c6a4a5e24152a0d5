// The connection manager's messages as the datagrams of IBA 12.6 that travel between hosts, and back.
//
// Pure. message_of() trusts nothing: what it returns has every field in range.
#pragma once

#include <optional>

#include "verbs/cm/cm_message.hpp"
#include "wire/mad.hpp"

namespace weir::cm {

// What a datagram says beside the message.
struct Addressing {
  IpBytes source{}, destination{};  // GIDs
  std::uint64_t guid = 0;           // of the sender's device
  std::uint64_t process = 0;        // as of verbs::ManagementRoute
};

wire::Mad mad_of(const CmMessage& message, const Addressing& addressing, std::uint64_t transaction);

struct Translated {
  CmMessage message;
  // The request names other addresses than it came from and went to: something on the way rewrites them, and
  // packets of the connection would fail their check (the ICRC covers the addresses).
  bool rewritten = false;
};
// `addressing`: as the datagram came. nullopt: none of ours.
std::optional<Translated> message_of(const wire::Mad& mad, const Addressing& addressing);

}  // namespace weir::cm

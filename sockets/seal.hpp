// How an end on another host proves which connection it means, and that it knows this user's secret.
//
// Each proof in a message is made under a key of its own, derived from the secret, the connection and the
// speaker. So nobody can prove anything with what they heard from the other end or from another connection.
// Without a secret, messages of different connections are still kept apart, but anyone who guesses a
// connection's first bytes can prove it; docs/threat-model.md says who can come that far. Pure.
#pragma once

#include <cstdint>

#include "hash/siphash.hpp"
#include "sockets/far_messages.hpp"

namespace weir::sockets {

enum class Speaker : std::uint8_t {
  request = 1,  // the asker, in its request
  asker = 2,    // the asker, in its hello
  asked = 3,    // the end that accepted
};

// `asker` and `asked` are the two ends of the connection.
hash::SipKey sealing_key(hash::SipKey secret, Speaker speaker, const FarRequest::End& asker,
                         const FarRequest::End& asked);

}  // namespace weir::sockets

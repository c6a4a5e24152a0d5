// The secret key under which this process hashes keys that strangers choose.
//
// The key is randomness that no caller passes in: containers construct their hash functions themselves, and a
// key that callers may set is a key that callers may forget. Hash values are not promised to anybody, so no
// result depends on the key. Threading: any thread.
#pragma once

#include "hash/siphash.hpp"

namespace weir::hash {

namespace detail {
// Draws the key from the kernel. Ends the process if there are no random numbers, since it could serve nobody
// safely.
SipKey draw_process_key() noexcept;
}  // namespace detail

inline const SipKey& process_key() {
  static const SipKey key = detail::draw_process_key();
  return key;
}

}  // namespace weir::hash

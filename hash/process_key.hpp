// The secret key under which this process hashes what strangers choose.
//
// It is randomness that nobody passes in: containers make their hash functions themselves, and a key that a
// caller may set is a key that a caller may forget. Nothing that a hash decides is promised to anybody, so no
// result depends on it. Threading: any thread.
#pragma once

#include "hash/siphash.hpp"

namespace weir::hash {

namespace detail {
// From the kernel. Ends the process if there are no random numbers: it could serve nobody safely.
SipKey draw_process_key() noexcept;
}  // namespace detail

inline const SipKey& process_key() {
  static const SipKey key = detail::draw_process_key();
  return key;
}

}  // namespace weir::hash

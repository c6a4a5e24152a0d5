// The responder of an unreliable connection over packets (IBA 9.8.2): executes messages on a Target as their
// packets come, answers nothing, and drops without a word each message of which it missed a packet, or that
// it cannot take.
//
// The expected PSN only tells a packet that follows the last one from one that does not: behind a gap the
// message at hand is dropped, and the next one that begins is taken. A packet that is a little behind is a
// duplicate or late, and is dropped, so that nothing is delivered twice. What a dropped SEND had taken of
// receives the next one uses.
//
// Not thread-safe. Pure.
#pragma once

#include <cstdint>

#include "rnic/packet/packet_counts.hpp"
#include "rnic/packet/psn.hpp"
#include "rnic/packet/target.hpp"
#include "wire/roce.hpp"

namespace weir::rnic::packet {

class UnreliableResponder {
 public:
  // `target` outlives it. first_psn: expected first.
  UnreliableResponder(Target& target, std::uint32_t path_mtu, Psn first_psn)
      : target_(target), path_mtu_(path_mtu), expected_(first_psn) {}

  // The caller has checked ICRC, addresses, P_Key and destination QPN.
  void receive(const wire::Packet&);

  Psn expected() const { return expected_; }
  const ResponderCounts& counts() const { return counts_; }

 private:
  enum class Kind : std::uint8_t { none, send, write };
  // The message whose packets are coming.
  struct Message {
    Kind kind = Kind::none;
    std::uint64_t offset = 0, length = 0;  // length: a WRITE's
  };

  bool begin(const wire::Packet&, wire::Operation);
  bool take(const wire::Packet&, wire::Operation);

  Target& target_;
  const std::uint32_t path_mtu_;
  Psn expected_;
  Message message_;
  ResponderCounts counts_;
};

}  // namespace weir::rnic::packet

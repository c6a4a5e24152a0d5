// What the responder asks of the queue pair that requests are for: its memory, its receives, its completions.
//
// A message comes in packets: begin, then append for each payload, then finish, which completes it. The
// responder calls in the order of the PSNs and never for a packet twice, unless the target itself answered
// `rnr` or `lost`: then the same packet comes again, later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rnic/memory/gather.hpp"
#include "rnic/types.hpp"

namespace weir::rnic::packet {

enum class Verdict : std::uint8_t {
  done,
  rnr,              // no receive is posted
  lost,             // cannot be answered now (a lock is held, a copy is late): as if the packet had not come
  nak_invalid,      // NAK 1
  nak_access,       // NAK 2
  nak_operational,  // NAK 3
};

// How a message ends.
struct Ending {
  std::optional<std::uint32_t> imm_be;  // in network order, as it came
  std::optional<std::uint32_t> invalidate;
  bool solicited = false;
  std::uint64_t byte_len = 0;  // of the whole message
};

// A nak_* verdict ends the target: it has completed the receive that it took with its own view of the error,
// raised its asynchronous event, and gone to the error state before it returns.
class Target {
 public:
  // XRC alone, before each packet of a request: the SRQ that it names, which receives it and whose process
  // and protection domain it acts on. No such SRQ in the domain: nak_invalid.
  virtual Verdict select(std::uint32_t srqn) = 0;
  // A SEND, whose length its packets do not say: takes a receive. append() beyond its length: nak_invalid.
  virtual Verdict begin_send() = 0;
  // A WRITE of that many bytes: key, rights, bounds, all of it at once. Length 0: neither is looked at.
  virtual Verdict begin_write(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) = 0;
  // Payload of the current message, at that offset; in order, without gaps. Never empty. After finish() was
  // `rnr` or `lost` a stranger may send the message again from the same offset with other bytes and another
  // length: only Ending::byte_len says how long the message is.
  virtual Verdict append(std::uint64_t offset, std::span<const std::byte>) = 0;
  // A SEND: its receive completes. A WRITE with an immediate takes a receive (rnr: none) and completes it;
  // any other WRITE reports nothing.
  virtual Verdict finish(const Ending&) = 0;

  // May a READ of that many bytes be answered? Length 0: only the queue pair's rights count.
  virtual Verdict check_read(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) = 0;
  // Where those bytes of a READ that was checked lie now, as the pieces of one packet, appended to `room`
  // (max_sge entries); `used` counts them. They are held until the caller has sent what it asked for.
  // Not done: the region has gone meanwhile. That a later request was refused does not matter. `srqn`: that
  // of the READ, whatever was selected since; a message that is on its way continues undisturbed.
  virtual Verdict read(std::uint32_t srqn, std::uint64_t addr, std::uint32_t rkey, std::uint32_t length,
                       std::span<iovec> room, std::uint32_t& used) = 0;

  // Executed once. `before`: what was there. Misaligned: nak_invalid.
  virtual Verdict atomic(SendOpcode, std::uint64_t addr, std::uint32_t rkey, std::uint64_t compare_add,
                         std::uint64_t swap, std::uint64_t& before) = 0;
  // `value` as 8 bytes of payload in memory order.
  virtual Verdict atomic_write(std::uint64_t addr, std::uint32_t rkey,
                               std::span<const std::byte, atomic_bytes> value) = 0;

  // The responder itself refuses (opcodes out of sequence, a length that contradicts, too many READs): ends
  // the target as if it had said so.
  virtual void refuse(Verdict) = 0;

 protected:
  ~Target() = default;
};

}  // namespace weir::rnic::packet

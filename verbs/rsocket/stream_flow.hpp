// One stream's flow control as numbers: where and how much may be sent, what has arrived, when to give the
// peer more.
//
// Receiving: the receive ring is two halves. The peer fills one after the other, in order; a half is given to
// it again when as many bytes were read. Each message (a WRITE with immediate) also takes a credit, given
// back when it was read to its end. Sending: the same seen from the other side. The peer's halves come as
// entries of a list in our memory, taken in turn.
//
// Invariants: what the peer has written and we have not read lies within what was given to it; it never has
// more messages out than credits. A message that breaks them is a violation and changes nothing.
// Pure: no memory but its own, no I/O. Not thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verbs/rsocket/stream_wire.hpp"

namespace weir::rsocket {

class StreamFlow {
 public:
  // `ring_bytes`: even, at least 2. `credits`: at least 1.
  StreamFlow(std::uint32_t ring_bytes, std::uint16_t credits);
  void begin(const Greeting& peers);

  // Sending.
  std::uint32_t sendable() const;  // bytes that one message may carry now
  bool has_credit() const { return sent_ != may_send_; }
  struct Place {
    std::uint64_t address;
    std::uint32_t key;
  };
  Place take(std::uint32_t bytes);  // 1 <= bytes <= sendable()
  void take_credit() { ++sent_; }   // for a message without data; has_credit()
  // The list entry that holds the next buffer, once there is one and we need it.
  bool wants_buffer() const { return target_.length == 0; }
  std::uint32_t next_entry() const { return next_entry_; }
  void give_buffer(const RemoteBuffer& buffer);  // wants_buffer(), buffer.length > 0

  // Receiving.
  enum class Arrival : std::uint8_t { data, credit, iomap, shutdown, disconnect, keepalive, violation };
  Arrival arrived(const Immediate& immediate);
  std::uint32_t unread() const { return unread_; }
  struct Piece {
    std::uint32_t offset;  // in the ring
    std::uint32_t length;  // contiguous
  };
  // Unread bytes from `skip` on; skip < unread().
  Piece piece(std::uint32_t skip = 0) const;
  void consume(std::uint32_t bytes);  // bytes <= unread()

  // What the peer is to be given now. Nothing: it has enough.
  struct Grant {
    std::uint16_t credits;  // the value of the credit message
    struct Buffer {
      std::uint32_t peers_entry;  // of the peer's list
      std::uint32_t offset;       // in our ring
      std::uint32_t length;
    };
    std::optional<Buffer> buffer;
  };
  std::optional<Grant> grant();  // once given, it counts as given

 private:
  std::uint32_t half() const { return ring_bytes_ / 2; }
  Arrival data_arrived(std::uint32_t bytes);

  const std::uint32_t ring_bytes_;
  const std::uint16_t credits_;

  RemoteBuffer target_;
  std::uint32_t next_entry_ = 1;  // entry 0 came with the greeting
  std::uint16_t sent_ = 0, may_send_ = 0, peers_credits_ = 0;

  std::uint32_t unread_ = 0, read_offset_ = 0;
  std::uint32_t given_ = 0;        // bytes of the ring the peer has not filled yet
  std::uint32_t free_ = 0;         // read, and not given again
  std::uint32_t give_offset_ = 0;  // the half that is given next
  std::uint32_t peers_entry_ = 1, peers_entries_ = 1;
  std::uint16_t read_messages_ = 0, granted_at_ = 0;
  std::vector<std::uint32_t> messages_;  // a ring of the lengths not read to their end
  std::size_t first_message_ = 0, message_count_ = 0;
};

}  // namespace weir::rsocket

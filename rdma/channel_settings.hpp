// Settings of channels, their counters, and the memory they hold. Plain data.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "rdma/error.hpp"

namespace weir::rdma {

// Fixed for a channel when it is made. The two ends may differ: each sends by what the other told it when
// they connected.
//
// Registered memory of one channel, at most:
//   receive_blocks * block_bytes   posted to the device
//   + held_bytes + one message     received and not let go yet, or being put together
//   + send_blocks * block_bytes    on their way out
//   + rendezvous_depth messages    offered to the peer (of piece_bytes, if copied) or being fetched from it
// On a software NIC only pages that were used count. With the defaults an idle channel has 512 KiB posted, of
// which it touched none.
struct ChannelSettings {
  std::uint32_t block_bytes = 16 << 10;  // of a SEND, header included; power of two, 1 KiB to 1 MiB
  std::uint16_t receive_blocks = 32;     // posted at all times, some reserved for acknowledgements; to 4096
  std::uint16_t send_blocks = 16;        // 4 to 4096
  std::uint32_t held_bytes = 1 << 20;    // beyond this, the peer's window shrinks until Messages are let go
  std::uint32_t max_message_bytes = 64 << 20;  // the longest message we accept; to 1 GiB

  // The optional techniques. Each can be switched off, so that a benchmark can show what it gains.
  std::uint16_t inline_bytes = 256;           // messages up to this travel in the work request; 0: off
  std::uint32_t rendezvous_bytes = 64 << 10;  // longer messages are fetched by one READ; 0: off
  std::uint8_t rendezvous_depth = 4;          // offers outstanding, each way; 1 to 16
  // Longer messages are offered in pieces of this size, at least 4 KiB: one is copied while another is
  // fetched; 0: off.
  std::uint32_t piece_bytes = 1 << 20;
  std::uint16_t signal_interval = 8;  // every how many SENDs one asks for a completion; 1: every one
  bool merge = true;                  // small messages share a SEND while the queue is full
  bool credits_ride = true;           // on the immediates of frames; false: explicit acknowledgements only
  bool keep_blocks = true;            // kept registered for reuse; false: each goes back to the pool
  // Take receives from those that all such channels share (EngineSettings::shared_receive_blocks). The
  // channel then posts no receive_blocks of its own; that number is only its window. When no receive is
  // posted the peer's device waits, so this suits many channels of which few are busy. Wakes as with
  // solicited_only.
  bool shared_receives = false;
  // With shared_receives: how long the peer's device waits before it tries again; 10 us to 655 ms, rounded up
  // to what devices can express (rnr_timer.hpp). The connection manager's default is the longest. Weir's NIC
  // does not wait that long: posting a receive wakes the sender.
  std::chrono::microseconds rnr_wait{160};
  bool solicited_only = true;  // sleep until a message that ends a burst; false: until any

  std::chrono::milliseconds resolve_timeout{2000};  // to find the peer's address, and again for the route
  std::chrono::milliseconds ack_timeout{250};       // as StreamSettings
  std::chrono::milliseconds linger{5000};           // after close(), for messages already taken
  std::chrono::milliseconds keepalive{3000};        // both ends ask the device this often; 0: never
};

// Errc::bad_setting with the name of the setting and its range.
Result<void> check(const ChannelSettings&);

struct ChannelCounters {
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;    // of messages
  std::uint64_t frames_sent = 0, frames_received = 0;  // SENDs with messages in them
  std::uint64_t inline_frames = 0;                     // that the device took with the work request
  std::uint64_t merged_messages = 0;                   // that shared a frame which another began
  std::uint64_t split_messages = 0;                    // over several frames
  std::uint64_t zero_copy_sends = 0;                   // Buffers that went out as they were
  std::uint64_t copied_bytes = 0;    // into registered memory, to be sent, or out of frames, put together
  std::uint64_t offers = 0;          // rendezvous of ours
  std::uint64_t offered_parts = 0;   // of those, of a message offered in pieces
  std::uint64_t fetches = 0;         // READs of what the peer offered
  std::uint64_t acks_sent = 0;       // explicit: nothing to ride on
  std::uint64_t credits_ridden = 0;  // window given back on the immediate of a frame
  std::uint64_t signalled = 0;       // work requests that asked for a completion
  std::uint64_t solicited = 0;       // frames that wake the receiver
  std::uint64_t shared_frames = 0;   // that came into receives which channels share
  std::uint64_t stalls = 0;          // a send found no window or no block
};

struct ChannelMemory {
  std::size_t posted_bytes = 0;   // blocks with the device, to receive into
  std::size_t held_bytes = 0;     // Messages not let go, and what waits to be received
  std::size_t sending_bytes = 0;  // Buffers of the user, and what is on its way
  std::size_t kept_bytes = 0;     // for reuse; shrink() gives them back
  std::size_t lent_bytes = 0;     // Messages that the user keeps for good
  std::size_t total() const { return posted_bytes + held_bytes + sending_bytes + kept_bytes + lent_bytes; }
};

}  // namespace weir::rdma

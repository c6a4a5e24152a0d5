// Settings of streams and of the engine that runs them. Plain data with the defaults of Valkey's protocol.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "rdma/device/memory_pool.hpp"
#include "rdma/error.hpp"

namespace weir::rdma {

// Fixed for a connection when it is made.
//
// Memory of one connection: receive_buffer_bytes (twice that while a fast sender is ahead of the reader) +
// send_buffer_bytes + 32 * receive_depth bytes. Pages are touched as they are first used, so a connection
// that never carried data holds about two pages on a software NIC; real hardware pins all of it.
struct StreamSettings {
  // The most that we announce to the peer at once; less while the peer writes little (ReceiveSize). 4 KiB to
  // 16 MiB.
  std::uint32_t receive_buffer_bytes = 1 << 20;
  std::uint32_t send_buffer_bytes = 256 << 10;  // where what we write waits for the device; 4 KiB to 16 MiB
  std::uint32_t piece_bytes = 64 << 10;  // of a large write, so that its reader overlaps; 1 KiB to 16 MiB
  // Data that has an owner (Stream::try_write) is read by the device in place from this many bytes on, if the
  // device supports on-demand paging; 0: never.
  std::uint32_t zero_copy_bytes = 32 << 10;
  std::uint16_t receive_depth = 1024;  // work queue depths; 16 to 8192
  std::uint16_t send_depth = 1024;
  // Every how many data writes one asks for a completion; at most half the depth.
  std::uint16_t signal_interval = 512;
  std::uint16_t inline_bytes = 256;  // writes up to this travel in the work request, if the device can
  std::chrono::milliseconds resolve_timeout{2000};  // to find the peer's address, and again for the route
  // A peer that vanished is detected after six to eight of these without an acknowledgement (of a keepalive,
  // if nothing else was sent); with the connection manager's default of 4 s that would take half a minute.
  std::chrono::milliseconds ack_timeout{250};
  std::chrono::milliseconds linger{5000};     // after close(), for bytes already taken to reach the peer
  std::chrono::milliseconds keepalive{3000};  // accepted connections send one this often; 0: never
};

struct EngineSettings {
  // Polling: this many tries at a time, or 4 us of them where a try is a system call, then other handlers
  // run; after `idle_spin` without a completion (up to four times that while sleeps turn out short) the
  // engine sleeps until the device signals. Raising either buys latency with CPU time. An `idle_spin` of 0
  // never polls in vain but once before a sleep.
  int spin_tries = 100;
  std::chrono::microseconds idle_spin{50};
  int completion_queue_entries = 32768;  // for each queue; connections that do not fit into one get a second
  int completion_vector = 0;             // -1: spread over what the device has
  std::uint32_t max_connections = 65536;
  std::uint32_t shared_receive_blocks = 1024;  // posted for all channels that share their receives
  MemoryPoolOptions pool;
  // Takes a line for the operator, at most one a minute for each source: a peer tried to reach memory that it
  // has no right to (engine/trespass.hpp). Called in the engine's thread, by engines opened beside it in
  // theirs. Empty: the line goes to stderr.
  std::function<void(const std::string& line)> warn;
};

// Errc::bad_setting with the name of the setting and its range.
Result<void> check(const StreamSettings&);

}  // namespace weir::rdma

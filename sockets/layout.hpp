// The file that the processes of one user share to find each other's ends of a TCP connection and to agree on
// carriers.
//
// Its name begins with "lasting-", as of all files that a killed process leaves there: the last process that
// ends by itself takes it away, and who comes later uses it as it is.
//
// It holds no payload: bytes go by RDMA WRITE into the receiver's ring. Processes of the same user in the
// same runtime folder trust each other as far as a debugger would let them; still, what is read here is
// checked, and read once.
//
// A `Side` is written by the end it belongs to, but `watchers` of a dead one. Entries, bells and processes
// are taken and given back under `lock`; all else is atomics with one writer. A process holds a lock on byte
// `index` of the file for as long as it lives, which is how others tell that it is gone, also from another
// pid namespace.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "sockets/beginning.hpp"
#include "sockets/carrier.hpp"

namespace weir::sockets {

inline constexpr std::uint32_t max_processes = 1024, max_bells = 4096, max_entries = 16384;
inline constexpr std::uint32_t bell_words = 64, most_members = bell_words * 64;
inline constexpr std::uint32_t most_watchers = 4;

// Both ends of a connection, the lower one first, and the network namespace: the same for both ends.
struct Key {
  struct End {
    std::array<std::uint8_t, 16> address{};  // IPv4 as ::ffff:a.b.c.d
    std::uint32_t port = 0;
    auto operator<=>(const End&) const = default;
  };
  End low, high;
  std::uint64_t network_namespace = 0;
  bool operator==(const Key&) const = default;
};

enum class Stage : std::uint32_t {
  absent,
  present,  // would change carriers if the peer did
  offered,  // `offer` is there
  linked,   // the queue pair is connected to the peer's: it can be written to
  gone,     // closed
};

struct Offer {
  std::uint32_t qpn = 0, rkey = 0, ring_bytes = 0;
  std::uint64_t ring_address = 0;
  std::array<std::uint8_t, 16> gid{};
};

struct alignas(64) Side {
  std::atomic<std::uint32_t> stage;  // Stage
  std::atomic<std::uint32_t> process, pid;
  std::atomic<std::uint32_t> service;   // the bell of its service thread, as in `watchers`
  std::atomic<std::uint32_t> receives;  // not 0: looks at its ring
  std::atomic<std::uint32_t> why_not;   // a Reason
  std::atomic<std::uint32_t> cpu;       // where it last sent or received by a ring; + 1
  // Between hosts. `mirror`: an end on another host, as the process of the entry's other side knows it.
  // `done`: it will never enter the ring again. `far_port`: where its process is asked (far_pairing.hpp).
  std::atomic<std::uint32_t> mirror, done, far_port;
  Offer offer;               // valid from Stage::offered on
  Beginning sent, received;  // valid from Stage::present on
  std::array<char, 16> program;
  std::atomic<std::uint64_t> by_ring, by_tcp;  // bytes sent, for those who ask

  alignas(64) SenderWords sender;
  alignas(64) ReceiverWords receiver;
  // Whom to wake when something changes here: (bell + 1) << 16 | bit. 0: none.
  std::array<std::atomic<std::uint32_t>, most_watchers> watchers;
};

struct alignas(64) Entry {
  std::atomic<std::uint32_t> used;
  Key key;
  std::array<Side, 2> sides;  // the lower end's first
};

// Wakes one epoll set or one thread. A datagram to its socket wakes it if it said that it sleeps.
struct alignas(64) Bell {
  std::atomic<std::uint32_t> owner;  // process + 1; 0: free
  std::atomic<std::uint32_t> sleeping;
  std::atomic<std::uint64_t> summary;  // which words are not 0
  std::array<std::atomic<std::uint64_t>, bell_words> words;
};

struct Layout {
  static constexpr std::uint64_t the_magic = 0x5745'4952'534f'0003;  // "WEIRSO", version 3
  // Each version has files of its own, also for its bells: processes of two versions may share the folder.
  static std::string table_path(const std::string& directory) { return directory + "/lasting-table-3"; }
  static std::string bell_path(const std::string& directory, std::uint32_t index) {
    return directory + "/lasting-bell-3-" + std::to_string(index);
  }
  std::atomic<std::uint64_t> magic;
  pthread_mutex_t lock;  // robust, of all processes
  std::array<std::atomic<std::uint32_t>, max_processes> processes;
  std::array<std::atomic<std::uint32_t>, max_processes> put_back;  // by an operator, for that process to see
  alignas(4096) std::array<Bell, max_bells> bells;
  alignas(4096) std::array<Entry, max_entries> entries;
};

}  // namespace weir::sockets

// The file that the processes of one user share to find each other's ends of a TCP connection
// and to agree on carriers.
//
// Its name begins with "lasting-", like all files that a killed process leaves there. The last process that
// ends normally removes it; a process that finds it uses it as it is.
//
// It holds no payload: bytes go by RDMA WRITE into the receiver's ring. Processes of one user
// in one runtime folder trust each other as far as a debugger would let them. Still, each value
// is read once and checked.
//
// Only the end that a `Side` belongs to writes it, except for the `watchers` of a dead one. Entries, bells
// and processes are taken and freed under `lock`; everything else is atomics with one writer. For as long as
// it lives, a process holds a lock on byte `index` of the file. By that others see that it is gone, even
// from another pid namespace.
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

// Both ends of a connection, the lower one first, and the network namespace. Both ends compute the same key.
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
  present,  // this end would change carriers if the peer did
  offered,  // `offer` is valid
  linked,   // the queue pair is connected to the peer's, which can write to it
  gone,     // closed
};

struct Offer {
  std::uint32_t qpn = 0, rkey = 0, ring_bytes = 0;
  std::uint64_t ring_address = 0;
  std::array<std::uint8_t, 16> gid{};
};

struct alignas(64) Side {
  std::atomic<std::uint32_t> stage;                // Stage
  std::atomic<std::uint32_t> process, generation;  // of `Layout::generations` then
  std::atomic<std::uint32_t> pid;                  // for listings
  std::atomic<std::uint32_t> service;              // the bell of its service thread, as in `watchers`
  std::atomic<std::uint32_t> receives;             // not 0: the end looks at its ring
  std::atomic<std::uint32_t> why_not;              // a Reason
  std::atomic<std::uint32_t> cpu;                  // CPU of the last send or receive by a ring, + 1
  // Between hosts. `mirror`: this side is on another host, and the process of the other side keeps it.
  // `done`: it will never enter the ring again. `far_port`: where to ask its process (far_pairing.hpp).
  std::atomic<std::uint32_t> mirror, done, far_port;
  Offer offer;               // valid from Stage::offered on
  Beginning sent, received;  // valid from Stage::present on
  std::array<char, 16> program;
  std::atomic<std::uint64_t> by_ring, by_tcp;  // bytes sent, for listings

  alignas(64) SenderWords sender;
  alignas(64) ReceiverWords receiver;
  // What to wake when something changes here: (bell + 1) << 16 | bit. 0: unused.
  std::array<std::atomic<std::uint32_t>, most_watchers> watchers;
};

struct alignas(64) Entry {
  std::atomic<std::uint32_t> used;
  Key key;
  std::array<Side, 2> sides;  // the lower end's side first
};

// Wakes one epoll set or one thread. If it said that it sleeps, a byte in its pipe wakes it.
struct alignas(64) Bell {
  std::atomic<std::uint32_t> owner;  // process + 1; 0: free
  std::atomic<std::uint32_t> sleeping;
  std::atomic<std::uint32_t> generation;  // how many owners it has had: each has a pipe of its own
  std::atomic<std::uint64_t> summary;     // which of `words` are not 0
  std::array<std::atomic<std::uint64_t>, bell_words> words;
};

struct Layout {
  static constexpr std::uint64_t the_magic = 0x5745'4952'534f'0005;  // "WEIRSO", version 5
  // Each version has its own files and bells, because processes of two versions may share the folder.
  static std::string table_path(const std::string& directory) { return directory + "/lasting-table-5"; }
  // BellPath adds the bell's number and generation.
  static std::string bell_prefix(const std::string& directory) { return directory + "/lasting-bell-5-"; }
  std::atomic<std::uint64_t> magic;
  pthread_mutex_t lock;  // robust, shared by all processes
  // How many processes have had each number. A pid would not tell them apart: in containers, all have one.
  std::array<std::atomic<std::uint32_t>, max_processes> generations;
  std::array<std::atomic<std::uint32_t>, max_processes> put_back;  // set when an operator wants TCP
  alignas(4096) std::array<Bell, max_bells> bells;
  alignas(4096) std::array<Entry, max_entries> entries;
};

}  // namespace weir::sockets

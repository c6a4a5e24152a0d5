// The private ABI through which libibverbs.so.1 shows the NICs of this user's processes to `weir stat` and to
// the view of /sys (verbs/view).
//
// Exported under the version node WEIR_PRIVATE_1, like verbs/ibv/private_link.hpp. Library and program come
// in one package; `bytes` lets a program detect a different library. Reading neither changes nor stops a
// process: its segment is mapped read-only.
//
// Counters of bytes are in bytes, all others are counts; each only grows. Threading: use a Monitor from one
// thread at a time; weir_monitor_port() from any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace weir::verbs {

// Named as in rnic/counters.hpp, which explains each.
struct CountersSeen {
  // What the process requested, and what its peers requested of it.
  std::uint64_t sends, writes, reads, atomics, local_operations;
  std::uint64_t sends_served, writes_served, reads_served, atomics_served;
  // Payload bytes of its own requests, of its peers' requests, and of received datagrams.
  std::uint64_t bytes_out, bytes_back, served_bytes_in, served_bytes_out, datagram_bytes_in;
  std::uint64_t datagrams_in, multicasts_out, multicasts_in;
  std::uint64_t doorbells, receive_doorbells;
  std::uint64_t send_completions, receives;
  std::uint64_t own_wakeups, receive_wakeups;
  std::uint64_t rnrs, no_responses, retries;
  std::uint64_t send_errors, receive_errors, sends_flushed, receives_flushed, datagrams_dropped;
  std::uint64_t retries_exceeded, rnr_retries_exceeded, remote_access_errors, remote_invalid_requests;
  // Packets to and from other hosts, both requests and responses.
  std::uint64_t packets_out, packets_in;
  std::uint64_t packets_resent, packets_repeated;  // sent again by us; received again from the peer
  std::uint64_t naks_in, naks_out, rnr_naks_in, rnr_naks_out;
  std::uint64_t packets_dropped;  // received, but out of order, late or from elsewhere
  std::uint64_t packets_marked;   // received with a congestion mark from a switch (ECN)
  std::uint64_t cnps_in, cnps_out;
  // Of a process: packets that reached no queue pair (rnic::Dropped), and what the kernel did not hand over.
  std::uint64_t dropped_malformed, dropped_wrong_icrc, dropped_no_process, dropped_no_queue_pair,
      dropped_wrong_source, dropped_wrong_qkey, dropped_outside_window, dropped_over_budget, dropped_unproved,
      dropped_wrong_key, dropped_by_kernel;
  std::uint64_t transmit_wait_us;  // of a process: it had packets to send, and was paused
};

struct QueuePairSeen {
  std::uint32_t number;
  std::uint32_t peer_number;  // 0: not connected
  // The other host's address as a GID if packets reach the peer; all zeros: on this host, or not connected.
  std::uint8_t peer_gid[16];
  const char* type;   // "RC", "UC", "UD", "XRC send", "XRC receive"
  const char* state;  // "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"
  CountersSeen counters;
};

struct ProcessSeen {
  std::uint32_t bytes;  // sizeof(ProcessSeen)
  std::uint32_t slot;
  pid_t pid;                  // 0: in another pid namespace
  std::uint64_t incarnation;  // changes when another process takes the slot
  std::uint64_t identity;     // of the process's NIC, drawn at random
  CountersSeen sums;          // over its queue pairs, including destroyed ones
  const QueuePairSeen* queue_pairs;
  std::uint64_t queue_pair_count;
};

class Monitor;

}  // namespace weir::verbs

extern "C" {
// Joins the processes that share this runtime directory (nullptr: $WEIR_RUNTIME_DIR, or the default) as an
// observer. nullptr with the reason in `why`, cut to fit. The caller frees it with weir_monitor_close().
[[gnu::visibility("default")]] weir::verbs::Monitor* weir_monitor_open(const char* directory, char* why,
                                                                       std::uint64_t why_bytes);
// Calls `visit` for each living process with a NIC, in the order of their slots; its argument is valid during
// that call. Returns how many processes did not answer (because they are stopped, for example).
[[gnu::visibility("default")]] int weir_monitor_look(weir::verbs::Monitor*,
                                                     void (*visit)(void*, const weir::verbs::ProcessSeen*),
                                                     void*);
// The port's counters: the sum of all processes, including, since the first such call, those that ended.
// `bytes` is sizeof *sums. Returns 0, or -1 if the processes cannot be asked or the library does not
// belong to the calling program.
[[gnu::visibility("default")]] int weir_monitor_port(std::uint64_t bytes, weir::verbs::CountersSeen* sums);
[[gnu::visibility("default")]] void weir_monitor_close(weir::verbs::Monitor*);
}

// What libibverbs.so.1 tells of the NICs of this user's processes: the private ABI between it, `weir stat`
// and the view of /sys (verbs/view).
//
// Exported under the version node WEIR_PRIVATE_1, like verbs/ibv/private_link.hpp; library and program come
// in one package, and `bytes` tells a program that met another library. Nothing of a process is changed or
// stopped to read it: its segment is mapped for reading.
//
// Counters of bytes are in bytes, all others are counts; each only grows. Threading: one thread at a time for
// a Monitor; weir_monitor_port() from any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace weir::verbs {

// In the words of rnic/counters.hpp, where each is explained.
struct CountersSeen {
  // What the process asked for, and what its peers asked of it.
  std::uint64_t sends, writes, reads, atomics, local_operations;
  std::uint64_t sends_served, writes_served, reads_served, atomics_served;
  // Payload: of its own requests, of its peers', and of datagrams that came.
  std::uint64_t bytes_out, bytes_back, served_bytes_in, served_bytes_out, datagram_bytes_in;
  std::uint64_t datagrams_in, multicasts_out, multicasts_in;
  std::uint64_t doorbells, receive_doorbells;
  std::uint64_t send_completions, receives;
  std::uint64_t own_wakeups, receive_wakeups;
  std::uint64_t rnrs, no_responses, retries;
  std::uint64_t send_errors, receive_errors, sends_flushed, receives_flushed, datagrams_dropped;
  std::uint64_t retries_exceeded, rnr_retries_exceeded, remote_access_errors, remote_invalid_requests;
  // Packets to and from other hosts: requests and answers together.
  std::uint64_t packets_out, packets_in;
  std::uint64_t packets_resent, packets_repeated;  // sent again by us; by the peer, as far as we had them
  std::uint64_t naks_in, naks_out, rnr_naks_in, rnr_naks_out;
  std::uint64_t packets_dropped;  // of those that came: out of order, late, from elsewhere
  std::uint64_t packets_marked;   // of those that came: by a switch that is congested (ECN)
  std::uint64_t cnps_in, cnps_out;
};

struct QueuePairSeen {
  std::uint32_t number;
  std::uint32_t peer_number;  // 0: not connected
  // Reached by packets: the other host's address as a GID; all zeros: on this host, or not connected.
  std::uint8_t peer_gid[16];
  const char* type;   // "RC", "UC", "UD", "XRC send", "XRC receive"
  const char* state;  // "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"
  CountersSeen counters;
};

struct ProcessSeen {
  std::uint32_t bytes;  // sizeof(ProcessSeen)
  std::uint32_t slot;
  pid_t pid;                  // 0: of another pid namespace
  std::uint64_t incarnation;  // differs when a slot is another process's
  std::uint64_t identity;     // of the process's NIC, drawn at random
  CountersSeen sums;          // of its queue pairs, those that are destroyed included
  const QueuePairSeen* queue_pairs;
  std::uint64_t queue_pair_count;
};

class Monitor;

}  // namespace weir::verbs

extern "C" {
// Joins the processes that share this runtime directory (nullptr: $WEIR_RUNTIME_DIR, or the default), to look
// on. nullptr with the reason, cut to fit, in `why`. The caller's, until weir_monitor_close().
[[gnu::visibility("default")]] weir::verbs::Monitor* weir_monitor_open(const char* directory, char* why,
                                                                       std::uint64_t why_bytes);
// Calls `visit` for each living process with a NIC, in the order of their slots; what it is shown is valid
// during that call. How many there were that did not answer (a stopped one, say).
[[gnu::visibility("default")]] int weir_monitor_look(weir::verbs::Monitor*,
                                                     void (*visit)(void*, const weir::verbs::ProcessSeen*),
                                                     void*);
// What the port counted: all processes together, and since the first such call also those that ended.
// `bytes`: sizeof *sums. 0; -1: the processes cannot be asked, or this is not the library that goes with the
// caller.
[[gnu::visibility("default")]] int weir_monitor_port(std::uint64_t bytes, weir::verbs::CountersSeen* sums);
[[gnu::visibility("default")]] void weir_monitor_close(weir::verbs::Monitor*);
}

// The memory that a simulated network and the programs on its hosts share (docs/decisions/ on the twin): who
// may run, the virtual clock, and packets on their way between a NIC and the network.
//
// One thread of all programs runs at a time. It has been granted that by the coordinator, and gives it back
// when it waits. So whatever is not marked atomic here is written either by the thread that runs, or by the
// coordinator while none runs; the hand-over is what orders them (ThreadRecord::go, Arena::given_back).
//
// The programs belong to the user who runs the coordinator. It still reads each word they may write once
// (read_once), and bounds it: a program that writes over the arena spoils its own run and nothing else.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weir::link::fabric {

// Virtual time in units of 10 ps, as in fabric/sim/ticks.hpp.
using Ticks = std::uint64_t;
inline constexpr Ticks ticks_per_ns = 100;
inline constexpr Ticks no_time = ~Ticks{0};

// The path of the file that is the arena, a descriptor of the process. Set by `weir fabric run` in the
// environment of its programs.
inline constexpr char arena_variable[] = "WEIR_TWIN";
// Which [[program]] of the scenario this process belongs to, and on which host: numbers.
inline constexpr char program_variable[] = "WEIR_TWIN_PROGRAM";
inline constexpr char host_variable[] = "WEIR_TWIN_HOST";

inline constexpr std::uint32_t max_threads = 512, max_processes = 128;
inline constexpr std::uint32_t slot_bytes = 4352;     // headers, an MTU of 4096, ICRC
inline constexpr std::uint32_t slot_count = 16384;    // 71 MB, of which only what is used is ever touched
inline constexpr std::uint32_t outbox_packets = 512;  // of the running thread, until it waits
inline constexpr std::uint32_t inbox_packets = 2048;  // of a process
inline constexpr std::uint32_t report_bytes = 16384;
inline constexpr std::uint32_t no_slot = ~std::uint32_t{0};

// A word that another process may be writing.
template <class Word>
Word read_once(const Word& word) {
  Word seen;
  __atomic_load(&word, &seen, __ATOMIC_RELAXED);
  return seen;
}

using Address = std::array<std::uint8_t, 16>;  // a GID

struct PacketRecord {
  std::uint32_t slot = no_slot;  // where its bytes are: BTH to ICRC
  std::uint16_t bytes = 0;
  std::uint16_t source_port = 0;
  std::uint32_t queue_pair = 0;  // outbox: the number of the one that sends it
  std::uint8_t traffic_class = 0, hop_limit = 0;
  Address source{}, destination{};
  Ticks time = 0;  // outbox: when the NIC was given it; inbox: when it arrived
};

// What a thread waits for.
enum class Wait : std::uint32_t {
  nothing,      // it may go on at `ready_at`: a new thread, or one whose clock is ahead of others
  packets,      // it polled completion queues in vain
  descriptors,  // files and sockets: somebody else's write makes them ready
  address,      // a mutex, condition or futex at `key` of its own process
  time,         // only its deadline
  child,        // the end of another process
  memory,       // it spins: any change of its process's memory
  kernel        // it sleeps in a call behind our back: its descriptor, or the end of a child
};

enum class ThreadState : std::uint32_t {
  free,
  made,  // by its creator; it has not yet begun
  waiting,
  running,
  flushing,  // runs, and waits only until the outbox is empty
  ended,
  reporting  // waits, and writes into Arena::report where it is
};

// What a thread that reports is asked for.
enum class Report : std::uint32_t { stack, stack_and_nic };

struct alignas(64) ThreadRecord {
  std::atomic<std::uint32_t> go;     // counts grants; the thread sleeps on it (futex)
  std::atomic<std::uint32_t> state;  // ThreadState
  std::uint32_t process = 0;
  std::int32_t tid = 0;
  std::uint32_t worked = 0;  // since it was granted: it did more than poll in vain
  std::uint32_t helper = 0;  // of the NIC: what it does by itself is no progress of the program
  Wait wait = Wait::nothing;
  Ticks local = 0;               // its clock, when it began to wait; with a grant, the time of that
  Ticks horizon = 0;             // with a grant: until here nothing else happens
  Ticks deadline = no_time;      // the wait ends then
  Ticks ready_at = no_time;      // the wait is over, from then on
  Ticks look_at = no_time;       // descriptors: something was written then
  std::uint32_t written_to = 0;  // with a grant: something was written meanwhile
  std::uint64_t key = 0;         // address
  std::uint64_t order = 0;       // first come, first served at an address
  std::array<char, 32> what{};   // the call it waits in
  std::int32_t descriptor = -1;  // the first that the call waits for; -1: none
  std::uint32_t more = 0;        // how many others it waits for
};

struct alignas(64) ProcessRecord {
  std::atomic<std::uint32_t> pid;  // as it sees itself; 0: free
  std::uint32_t program = 0, host = 0;
  std::uint32_t parent = 0;           // the number of the process that forked it, plus 1; 0: none
  std::atomic<std::uint32_t> ends;    // it is about to end, or was killed
  std::uint32_t nic_slot = 0;         // bits 14 and up of its queue pair numbers; 0: no NIC yet
  std::uint32_t packet_thread = ~0u;  // waits for packets if no thread polls; ~0: none
  Ticks timer_due = no_time;          // of its timers with descriptors: a thread of it is granted then
  Ticks alarm_due = no_time;          // of alarm() and setitimer()
  std::uint64_t drawn = 0;            // random numbers
  std::uint64_t uncontrolled = 0;     // calls that waited outside our control
  std::uint32_t inbox_head = 0, inbox_tail = 0;  // read, written
  std::array<PacketRecord, inbox_packets> inbox;
};

struct Arena {
  static constexpr std::uint64_t current_magic = 0x77656972'74776970;
  std::uint64_t magic = current_magic;
  std::uint64_t seed = 1;
  double tsc_mhz = 2000;  // what the processor's counter runs at
  Ticks tcp_latency = 20'000 * ticks_per_ns;
  std::uint32_t path_mtu = 4096;
  std::atomic<std::uint32_t> given_back;  // counts; the coordinator sleeps on it (futex)
  std::uint32_t ends = 0;                 // counts processes that were killed by others
  std::uint32_t written = 0;              // counts writes to what descriptors may wait for
  std::uint32_t sent = 0;                 // the same: what went over sockets, which may be other programs'
  std::uint64_t waits = 0;                // numbers ThreadRecord::order
  Report report_wanted = Report::stack;
  std::array<char, report_bytes> report;  // ends with a 0
  // No record from here on was ever used.
  std::atomic<std::uint32_t> threads_used, processes_used;
  std::uint32_t outbox_used = 0;
  std::array<PacketRecord, outbox_packets> outbox;
  std::array<ThreadRecord, max_threads> threads;
  std::array<ProcessRecord, max_processes> processes;
  alignas(4096) std::array<std::array<std::byte, slot_bytes>, slot_count> slots;
};

}  // namespace weir::link::fabric

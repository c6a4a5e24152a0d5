// The part of the twin that is inside each program: its threads wait for the coordinator's grant, one of all
// programs runs at a time, and its clock is the virtual one (link/fabric/arena.hpp).
//
// This library stands in front of the C library's calls that wait, tell the time, draw random numbers and
// make threads. Where the program was not started by `weir fabric run` it does nothing.
//
// Threading: from any thread. A thread that has no record (made behind our back) goes to the C library.
#pragma once

#include <dlfcn.h>

#include <cstdint>

#include "link/fabric/arena.hpp"
#include "link/fabric/inside.hpp"

// The C library's function of that name, behind this library's.
#define WEIR_NEXT(name)                                                                      \
  ([] {                                                                                      \
    static const auto next = reinterpret_cast<decltype(&::name)>(::dlsym(RTLD_NEXT, #name)); \
    return next;                                                                             \
  }())

namespace weir::twin {

using link::fabric::Arena;
using link::fabric::no_time;
using link::fabric::ProcessRecord;
using link::fabric::ThreadRecord;
using link::fabric::Ticks;
using link::fabric::ticks_per_ns;
using link::fabric::Wait;

inline constexpr Ticks ticks_per_s = ticks_per_ns * 1'000'000'000;

// Whether this thread is under the coordinator. The first call of a process attaches it, and waits for its
// first grant.
bool controlled();

// The descriptor through which programs that this one executes find the arena; -1: there is none. Many
// programs close all they do not know before they execute another.
int arena_descriptor();

// Of this process; controlled() was true.
Arena& arena();
ProcessRecord& process();
ThreadRecord& self();

inline Ticks now() { return self().local; }
// As now(), for programs that read a clock: a loop that only reads clocks must end, so after some reads in
// a row each costs a little.
Ticks read_clock();

// Calls that never wait, and found nothing, were made so often in a row that one must cost time: a program
// that loops over them would loop for ever.
bool looked_too_often();

struct WaitFor {
  Wait kind;
  Ticks deadline = no_time;
  std::uint64_t key = 0;
  const char* what = "";
  int descriptor = -1;     // the first of those it waits for
  std::uint32_t more = 0;  // other descriptors
};
// Gives the baton back until the wait is over. True: a signal handler ran.
bool wait_for(const WaitFor& wait);
// Until that time; returns at once if nothing else happens before.
void advance_to(Ticks time, const char* what);

// A deadline `ns` from now; no_time for "never".
Ticks after_ns(std::uint64_t ns);

// Something that descriptors may be waited for was written, closed or connected.
void wrote();
void worked();

// Ends the waits of up to `count` threads of this process at that address, first come first served. Returns
// how many.
int wake_address(std::uint64_t key, int count);

// The record of a thread that is about to be made, which is ready from now on; nullptr: there are too many.
ThreadRecord* new_thread(ProcessRecord& owner);
// In the new thread: takes the record and waits for its first grant.
void become(ThreadRecord& record);
// In the child of fork().
void become_process(ProcessRecord& owner, ThreadRecord& record);
ProcessRecord* new_process();
// This thread will not run any more.
void end_thread();
// This process is about to end. Nothing else runs until it has.
void end_process();

// Calls go to the C library while one of these lives in this thread.
class Outside {
 public:
  Outside();
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  bool before_;
};

// timers.cpp: those that are due write their descriptors or raise SIGALRM. True: a signal was raised.
bool run_due_timers();
// In a child: alarms and timers with signals are not inherited.
void forget_alarms();
// report.cpp: into Arena::report a line "code MODULE OFFSET SYMBOL" for each frame of this thread's stack,
// the innermost first, without those of this library; then lines "nic TEXT" if they are asked for.
void write_report();
void describe_nic_with(link::fabric::DescribeNic describe);
// processor_clock.cpp
void catch_processor_clock();
// While it lives, rdtsc does not fault: before another program takes this process over.
struct CounterReadable {
  CounterReadable();
  ~CounterReadable();
  CounterReadable(const CounterReadable&) = delete;
  CounterReadable& operator=(const CounterReadable&) = delete;
};
// descriptor_calls.cpp: the descriptor of Inside::watch_packets.
void announce_packets();
void watch_packets(int descriptor);

}  // namespace weir::twin

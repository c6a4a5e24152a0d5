#include "twin/inside/baton.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

#include "twin/inside/held_signals.hpp"

namespace weir::twin {
namespace {

using link::fabric::ThreadState;

constexpr unsigned free_clock_reads = 256;
constexpr unsigned free_looks = 64;
// Polls in vain after something was written: loops try a number of times, and then look at
// descriptors and clocks.
constexpr unsigned free_polls = 256;
constexpr Ticks least_clock_read = 25 * ticks_per_ns, most_clock_read = 10'000 * ticks_per_ns;
// Polls that another thread of the process ended before any time had passed.
constexpr unsigned free_turns = 16;
constexpr Ticks shortest_turn = 100 * ticks_per_ns, longest_turn = 10'000 * ticks_per_ns;
constexpr Ticks shortest_idle = 1'000 * ticks_per_ns, longest_idle = 1'000'000 * ticks_per_ns;

enum class Attached : int { unknown, attaching, yes, no };

Arena* shared = nullptr;
std::atomic<Attached> attached{Attached::unknown};
link::fabric::Inside offered{};

__attribute__((tls_model("initial-exec"))) thread_local ThreadRecord* own = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local bool outside = false;
__attribute__((tls_model("initial-exec"))) thread_local unsigned clock_reads = 0, looks = 0, polls_left = 0;
__attribute__((tls_model("initial-exec"))) thread_local Ticks idle = shortest_idle, first_read = 0;
__attribute__((tls_model("initial-exec"))) thread_local unsigned turns = 0;
__attribute__((tls_model("initial-exec"))) thread_local Ticks turn_cost = shortest_turn;

long raw(long number, const void* a, long b, long c) {
  long result;
  register long r10 asm("r10") = 0;
  register long r8 asm("r8") = 0;
  register long r9 asm("r9") = 0;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

void give_back() {
  shared->given_back.fetch_add(1, std::memory_order_acq_rel);
  raw(SYS_futex, &shared->given_back, FUTEX_WAKE, 1);
}

void sleep_until_granted(ThreadRecord& record, std::uint32_t seen) {
  for (;;) {
    while (record.go.load(std::memory_order_acquire) == seen) raw(SYS_futex, &record.go, FUTEX_WAIT, seen);
    if (record.state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(ThreadState::reporting))
      break;
    ++seen;
    outside = true;
    write_report();
    outside = false;
    record.state.store(static_cast<std::uint32_t>(ThreadState::waiting), std::memory_order_release);
    give_back();
  }
  clock_reads = looks = 0;
}

ThreadRecord* claim_thread(ProcessRecord& owner) {
  for (std::uint32_t i = 0; i < link::fabric::max_threads; ++i) {
    ThreadRecord& record = shared->threads[i];
    auto expected = static_cast<std::uint32_t>(ThreadState::free);
    if (!record.state.compare_exchange_strong(expected, static_cast<std::uint32_t>(ThreadState::made)))
      continue;
    record.process = static_cast<std::uint32_t>(&owner - shared->processes.data());
    record.tid = 0;
    record.worked = 1;
    record.helper = 0;
    record.wait = Wait::nothing;
    record.deadline = record.look_at = no_time;
    record.local = record.horizon = record.ready_at = 0;
    record.key = record.order = 0;
    record.descriptor = -1;
    record.more = 0;
    std::snprintf(record.what.data(), record.what.size(), "its start");
    std::uint32_t used = shared->threads_used.load();
    while (used <= i && !shared->threads_used.compare_exchange_weak(used, i + 1)) {
    }
    return &record;
  }
  return nullptr;
}

[[noreturn]] void refuse(const char* why) {
  std::fprintf(stderr, "weir fabric: %s\n", why);
  std::_Exit(126);
}

Arena* map_arena(const char* path) {
  const int file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC));
  if (file < 0) refuse("cannot open the arena named by WEIR_TWIN: start the program with weir fabric run");
  void* const at = ::mmap(nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::syscall(SYS_close, file);
  if (at == MAP_FAILED) refuse("cannot map the arena named by WEIR_TWIN: raise the limit of address space");
  auto* const mapped = static_cast<Arena*>(at);
  if (mapped->magic != Arena::current_magic)
    refuse("the arena named by WEIR_TWIN is of another version: use one version of Weir");
  return mapped;
}

std::uint32_t number_in(const char* variable) {
  const char* const text = ::getenv(variable);
  return text != nullptr ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) : 0;
}

ProcessRecord* find_process(std::uint32_t pid) {
  for (ProcessRecord& record : shared->processes)
    if (record.pid.load() == pid) return &record;
  return nullptr;
}

// That of a child that the C library made (spawn_calls.cpp), whose number its parent may not know yet.
ProcessRecord* expected_by_parent() {
  const ProcessRecord* const parent = find_process(static_cast<std::uint32_t>(::syscall(SYS_getppid)));
  if (parent == nullptr) return nullptr;
  const auto number = static_cast<std::uint32_t>(parent - shared->processes.data());
  for (ProcessRecord& record : shared->processes)
    if (record.pid.load() == ~0u && record.parent == number + 1) return &record;
  return nullptr;
}

// After exec the thread that called it still has the baton; other threads of before are gone. A child that
// was expected has one that was made for it.
ThreadRecord* left_by_exec(ProcessRecord& owner) {
  ThreadRecord* running = nullptr;
  const auto mine = static_cast<std::uint32_t>(&owner - shared->processes.data());
  for (std::uint32_t i = 0; i < shared->threads_used.load(); ++i) {
    ThreadRecord& record = shared->threads[i];
    const auto state = static_cast<ThreadState>(record.state.load());
    if (record.process != mine || state == ThreadState::free) continue;
    if ((state == ThreadState::running || state == ThreadState::made) && running == nullptr)
      running = &record;
    else
      record.state.store(static_cast<std::uint32_t>(ThreadState::free));
  }
  owner.nic_slot = 0;
  owner.packet_thread = ~0u;
  owner.timer_due = owner.alarm_due = no_time;
  return running;
}

// A poll that found nothing takes no time by itself: nothing can change before the wait is over. If it was
// ended by a signal, or something was written meanwhile, the polls that follow return at once, so that a loop
// comes to its other exits when there is something behind them. Threads that poll in turn, one because the
// other ran, must come to an end, too: each turn costs time then.
void wait_for_completions(bool first) {
  if (first) {
    idle = shortest_idle;
    turns = 0;
    turn_cost = shortest_turn;
  }
  if (polls_left != 0) {
    --polls_left;
    clock_reads = 0;  // the NIC's own, in each poll
    return;
  }
  const Ticks since = now();
  const Ticks until = since + idle;
  idle = std::min(idle * 2, longest_idle);
  const bool handled = wait_for({.kind = Wait::packets, .deadline = until, .what = "ibv_poll_cq"});
  if (handled || own->written_to != 0) polls_left = free_polls;
  turns = now() == since ? turns + 1 : 0;
  if (turns <= free_turns) return;
  wait_for({.kind = Wait::time, .deadline = since + turn_cost, .what = "ibv_poll_cq"});
  turn_cost = std::min(turn_cost * 2, longest_turn);
}

void offer() {
  offered = {.arena = shared,
             .process = &process(),
             .now = [] { return now(); },
             .polled_in_vain =
                 [](bool first) {
                   if (controlled()) wait_for_completions(first);
                 },
             .worked = [] { worked(); },
             .flush =
                 [] {
                   if (!controlled()) return;
                   const std::uint32_t seen = own->go.load(std::memory_order_relaxed);
                   own->state.store(static_cast<std::uint32_t>(ThreadState::flushing),
                                    std::memory_order_release);
                   give_back();
                   sleep_until_granted(*own, seen);
                 },
             .watch_packets = [](int descriptor) { watch_packets(descriptor); },
             .describe_with = [](link::fabric::DescribeNic describe) { describe_nic_with(describe); }};
}

void attach() {
  auto expected = Attached::unknown;
  if (!attached.compare_exchange_strong(expected, Attached::attaching)) return;
  const char* const path = ::secure_getenv(link::fabric::arena_variable);
  if (path == nullptr) {
    attached.store(Attached::no);
    return;
  }
  outside = true;
  shared = map_arena(path);
  const auto pid = static_cast<std::uint32_t>(::syscall(SYS_getpid));
  ProcessRecord* record = find_process(pid);
  if (record == nullptr) record = expected_by_parent();
  if (record == nullptr) record = find_process(pid);  // the parent has written it meanwhile
  ThreadRecord* thread = record != nullptr ? left_by_exec(*record) : nullptr;
  if (record == nullptr) record = new_process();
  if (record == nullptr) refuse("too many processes for one run");
  const bool goes_on =
      thread != nullptr && thread->state.load() == static_cast<std::uint32_t>(ThreadState::running);
  if (thread == nullptr) {
    record->program = number_in(link::fabric::program_variable);
    record->host = number_in(link::fabric::host_variable);
    thread = claim_thread(*record);
  }
  if (thread == nullptr) refuse("too many threads for one run");
  own = thread;
  record->pid.store(pid);
  catch_processor_clock();
  offer();
  attached.store(Attached::yes);
  if (!goes_on) become(*thread);
  outside = false;
}

}  // namespace

bool controlled() {
  if (outside) return false;
  if (own != nullptr) [[likely]]
    return true;
  if (attached.load(std::memory_order_acquire) != Attached::unknown) return false;
  attach();
  return own != nullptr;
}

int arena_descriptor() {
  static const int found = [] {
    constexpr std::string_view folder = "/proc/self/fd/";
    const char* const path = ::secure_getenv(link::fabric::arena_variable);
    return path != nullptr && std::string_view(path).starts_with(folder) ? std::atoi(path + folder.size())
                                                                         : -1;
  }();
  return found;
}

Arena& arena() { return *shared; }
ThreadRecord& self() { return *own; }
ProcessRecord& process() { return shared->processes[own->process]; }

Outside::Outside() : before_(outside) { outside = true; }
Outside::~Outside() { outside = before_; }

Ticks after_ns(std::uint64_t ns) {
  constexpr std::uint64_t longest_ns = 100'000'000'000'000'000;  // three years
  return now() + std::min(ns, longest_ns) * ticks_per_ns;
}

bool wait_for(const WaitFor& wait) {
  ThreadRecord& record = *own;
  record.wait = wait.kind;
  record.deadline = wait.deadline;
  record.ready_at = wait.kind == Wait::nothing ? record.local : no_time;
  record.look_at = no_time;
  record.key = wait.key;
  record.order = shared->waits++;
  record.descriptor = wait.descriptor;
  record.more = wait.more;
  std::strncpy(record.what.data(), wait.what, record.what.size() - 1);
  HeldSignals signals;
  const std::uint32_t seen = record.go.load(std::memory_order_relaxed);
  record.state.store(static_cast<std::uint32_t>(ThreadState::waiting), std::memory_order_release);
  give_back();
  sleep_until_granted(record, seen);
  bool handled = signals.release();
  if (std::min(process().timer_due, process().alarm_due) <= record.local) handled |= run_due_timers();
  announce_packets();
  return handled;
}

void advance_to(Ticks time, const char* what) {
  if (time <= own->local) return;
  if (time > own->horizon) {
    wait_for({.kind = Wait::time, .deadline = time, .what = what});
    return;
  }
  own->local = time;
}

// So that a loop that waits for a time ends after some reads, however long, and not much later than that
// time.
Ticks clock_read_cost(Ticks spent_reading) {
  return std::clamp(spent_reading / 64, least_clock_read, most_clock_read);
}

Ticks read_clock() {
  if (clock_reads++ == 0) first_read = own->local;
  if (clock_reads > free_clock_reads) {
    own->local += clock_read_cost(own->local - first_read);
    if (own->local > own->horizon) {
      const auto before = std::pair(clock_reads, first_read);
      wait_for({.kind = Wait::nothing, .what = "a clock"});
      std::tie(clock_reads, first_read) = before;
    }
  }
  return own->local;
}

bool looked_too_often() { return ++looks > free_looks; }

void worked() {
  if (own == nullptr) return;
  own->worked = 1;
  clock_reads = 0;
}

void wrote() {
  ++shared->written;
  own->worked = 1;
}

int wake_address(std::uint64_t key, int count) {
  int woken = 0;
  const std::uint32_t used = shared->threads_used.load(std::memory_order_relaxed);
  for (; woken < count; ++woken) {
    ThreadRecord* first = nullptr;
    for (std::uint32_t i = 0; i < used; ++i) {
      ThreadRecord& record = shared->threads[i];
      if (record.process != own->process || record.wait != Wait::address || record.key != key ||
          record.ready_at != no_time ||
          record.state.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(ThreadState::waiting))
        continue;
      if (first == nullptr || record.order < first->order) first = &record;
    }
    if (first == nullptr) break;
    first->ready_at = own->local;
    own->worked = 1;
  }
  return woken;
}

ProcessRecord* new_process() {
  for (ProcessRecord& record : shared->processes) {
    std::uint32_t expected = 0;
    if (!record.pid.compare_exchange_strong(expected, ~0u)) continue;
    record.program = record.host = record.nic_slot = record.parent = 0;
    record.ends.store(0);
    record.packet_thread = ~0u;
    record.timer_due = record.alarm_due = no_time;
    record.drawn = record.uncontrolled = 0;
    record.inbox_head = record.inbox_tail;
    const auto behind = static_cast<std::uint32_t>(&record - shared->processes.data()) + 1;
    std::uint32_t used = shared->processes_used.load();
    while (used < behind && !shared->processes_used.compare_exchange_weak(used, behind)) {
    }
    return &record;
  }
  return nullptr;
}

ThreadRecord* new_thread(ProcessRecord& owner) {
  ThreadRecord* const record = claim_thread(owner);
  if (record == nullptr) return nullptr;
  record->local = record->ready_at = own->local;
  return record;
}

void become(ThreadRecord& record) {
  own = &record;
  const HeldSignals signals;
  record.tid = static_cast<std::int32_t>(::syscall(SYS_gettid));
  const std::uint32_t seen = record.go.load(std::memory_order_relaxed);
  record.wait = Wait::nothing;
  record.ready_at = record.local;
  record.state.store(static_cast<std::uint32_t>(ThreadState::waiting), std::memory_order_release);
  give_back();
  sleep_until_granted(record, seen);
}

void become_process(ProcessRecord& owner, ThreadRecord& record) {
  own = &record;
  owner.pid.store(static_cast<std::uint32_t>(::syscall(SYS_getpid)));
  offered.process = &owner;
  forget_alarms();
  become(record);
}

void end_process() {
  if (own == nullptr) return;
  process().ends.store(1);
  own = nullptr;  // the baton stays with this thread until the process is gone
  outside = true;
  give_back();
}

void end_thread() {
  ThreadRecord& record = *own;
  wake_address(reinterpret_cast<std::uint64_t>(&record), INT_MAX);
  own = nullptr;
  outside = true;
  record.state.store(static_cast<std::uint32_t>(ThreadState::ended), std::memory_order_release);
  give_back();
}

}  // namespace weir::twin

extern "C" const weir::link::fabric::Inside* weir_twin_inside() {
  return weir::twin::controlled() ? &weir::twin::offered : nullptr;
}

namespace {
__attribute__((constructor)) void begin() { (void)weir::twin::controlled(); }
// After the program's own, and those of libraries that it uses.
__attribute__((destructor)) void end() {
  if (weir::twin::controlled()) weir::twin::end_process();
}
}  // namespace

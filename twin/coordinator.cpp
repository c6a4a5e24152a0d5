#include "twin/coordinator.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <thread>
#include <utility>

#include "twin/descriptor_names.hpp"
#include "twin/schedule.hpp"
#include "twin/waiting_stack.hpp"

namespace weir::twin {

using link::fabric::Arena;
using link::fabric::max_threads;
using link::fabric::no_time;
using link::fabric::ProcessRecord;
using link::fabric::read_once;
using link::fabric::ThreadRecord;
using link::fabric::ThreadState;
using link::fabric::Wait;

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Real = std::chrono::steady_clock;

constexpr milliseconds start_limit{20'000};  // a program loads its libraries
constexpr milliseconds look_interval{20};
// When a thread that runs is looked at: it may spin on memory, or have ended. Only what it costs depends on
// it.
constexpr microseconds first_look{300}, longest_pause{100'000};
constexpr unsigned looks_before_deadlock = 25;
constexpr milliseconds report_limit{1000};        // a thread that everything waits for may hold a lock
constexpr std::chrono::seconds thread_limit{20};  // without a call that gives the baton back
// So long nothing but idle polls: programs that would poll for ever.
constexpr Ticks idle_limit = 30 * fabric::sim::ticks_per_s;
constexpr Ticks longest_run = static_cast<Ticks>(fabric::sim::longest_run_ns) * fabric::sim::ticks_per_ns;

ThreadState state_of(const ThreadRecord& thread) {
  return static_cast<ThreadState>(thread.state.load(std::memory_order_acquire));
}

void set_state(ThreadRecord& thread, ThreadState state) {
  thread.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, microseconds limit) {
  const timespec relative{limit.count() / 1'000'000, limit.count() % 1'000'000 * 1000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &relative, nullptr, 0);
}

void go(ThreadRecord& thread) {
  set_state(thread, ThreadState::running);
  thread.go.fetch_add(1, std::memory_order_acq_rel);
  ::syscall(SYS_futex, &thread.go, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

std::string_view text_of(Wait wait) {
  switch (wait) {
    case Wait::nothing:
      return "its turn";
    case Wait::packets:
      return "completions";
    case Wait::descriptors:
      return "descriptors";
    case Wait::address:
      return "another thread";
    case Wait::time:
      return "a time";
    case Wait::child:
      return "a child";
    case Wait::memory:
      return "memory to change";
    case Wait::kernel:
      return "the kernel";
  }
  return "something unknown";
}

}  // namespace

Coordinator::Coordinator(Arena& arena, LiveNetwork& network, Processes& processes, const Scenario& scenario)
    : arena_(arena), network_(network), processes_(processes), scenario_(scenario) {
  result_.programs.resize(scenario.programs.size());
}

std::expected<RunResult, std::string> Coordinator::run() {
  if (auto started = start_programs(); !started) return std::unexpected(started.error());
  while (!all_ended() && step()) {
  }
  result_.end = now_;
  for (const ProcessRecord& process : arena_.processes)
    if (process.uncontrolled != 0)
      result_.uncontrolled.push_back(
          fmt::format("{} calls in {} went to the kernel's own time", process.uncontrolled,
                      scenario_.programs[process.program % scenario_.programs.size()].name));
  return std::move(result_);
}

void Coordinator::stop_at(Ticks time, std::function<void(const std::string&)> stopped) {
  stop_at_ = time;
  stopped_ = std::move(stopped);
}

// One after the other, so that their records and process numbers are the same in every run.
std::expected<void, std::string> Coordinator::start_programs() {
  for (std::uint32_t i = 0; i < scenario_.programs.size(); ++i) {
    if (auto started = processes_.start(scenario_, i); !started) return started;
    if (auto begun = wait_for_first_thread(i); !begun) return begun;
  }
  return {};
}

std::expected<void, std::string> Coordinator::wait_for_first_thread(std::uint32_t program) {
  const auto until = Real::now() + start_limit;
  for (;;) {
    const std::uint32_t seen = arena_.given_back.load();
    for (std::uint32_t i = 0; i < std::min(arena_.threads_used.load(), max_threads); ++i) {
      ThreadRecord& thread = arena_.threads[i];
      if (state_of(thread) != ThreadState::waiting || arena_.processes[process_of(thread)].program != program)
        continue;
      thread.local = thread.ready_at = scenario_.programs[program].start;
      pids_[process_of(thread)] = processes_.pid(program);
      return {};
    }
    reap();
    if (result_.programs[program].ended) return {};  // its output says why
    if (Real::now() > until)
      return std::unexpected(fmt::format(
          "{} on {} does not begin: is it a program that loads shared libraries? (weir run -- {})",
          scenario_.programs[program].name, scenario_.programs[program].host,
          scenario_.programs[program].command.front()));
    sleep_on(arena_.given_back, seen, milliseconds(5));
  }
}

bool Coordinator::all_ended() const { return std::ranges::all_of(result_.programs, &ProgramResult::ended); }

// False: the run is over.
bool Coordinator::step() {
  if (!settle()) return false;
  if (signal_ != nullptr && *signal_ != 0) {
    result_.interrupted = true;
    result_.ended_because = "a signal came";
    return false;
  }
  const Ticks network = network_.next_time();
  const auto turn = next_turn(arena_);
  const Ticks next = std::max(now_, std::min(network, turn ? turn->at : no_time));
  if (next > now_ && look_at_kernel(now_)) return true;  // not every write is counted
  if (next == no_time) return look_around();
  if (next >= stop_at_) {
    stop_for_debugger();
    return result_.ended_because.empty();
  }
  if (next > now_) looks_in_vain_ = 0;
  if (next > longest_run) {
    result_.ended_because = "the run reached 174 s of virtual time, the longest that there is\n" +
                            where_everything_waits(Stacks::with);
    return false;
  }
  if (next > progress_ + idle_limit && network == no_time && !will_go_on(arena_)) {
    result_.ended_because =
        "deadlock: every program waits for another\n" + where_everything_waits(Stacks::with);
    return false;
  }
  if (network <= next) {
    advance_network(std::min(stop_at_, turn ? turn->at : no_time));
    return true;
  }
  now_ = next;
  const bool takes = network_.holds_back(process_of(arena_.threads[turn->thread]));
  const auto taker = takes ? taker_before(arena_, *turn) : std::nullopt;
  grant(taker ? *taker : *turn, network);
  if (taker) network_.hold_back_no_more(process_of(arena_.threads[turn->thread]));
  return result_.ended_because.empty();
}

// Until a program is woken, or has its turn at `until`.
void Coordinator::advance_network(Ticks until) {
  constexpr unsigned max_events = 1u << 16;  // then somebody may want the run to end
  for (unsigned i = 0; i < max_events; ++i) {
    const Ticks next = network_.next_time();
    if (next == no_time || next > until || next > longest_run) return;
    progress_ = now_ = next;
    if (network_.advance()) return;
  }
}

void Coordinator::grant(const Turn& turn, Ticks network_next) {
  ThreadRecord& thread = arena_.threads[turn.thread];
  thread.local = std::max(read_once(thread.local), now_);
  thread.horizon = std::min({network_next, turn.next, stop_at_});
  thread.written_to = read_once(thread.look_at) != no_time ? 1 : 0;
  thread.look_at = no_time;
  thread.worked = 0;
  ++result_.grants;
  go(thread);
  held_.erase(turn.thread);  // lets it run
  if (wait_for_baton(thread)) after(thread);
}

// False: its process has ended, or the run ends.
bool Coordinator::wait_for_baton(ThreadRecord& thread) {
  const Real::time_point since = Real::now();
  auto next_look = since + first_look;
  auto pause = first_look;
  for (;;) {
    const std::uint32_t seen = arena_.given_back.load(std::memory_order_acquire);
    const ThreadState state = state_of(thread);
    if (state == ThreadState::flushing) {
      network_.collect(process_of(thread));
      go(thread);
      continue;
    }
    if (state != ThreadState::running) return true;
    const std::uint32_t process = process_of(thread);
    if (arena_.processes[process].ends.load() != 0) {
      wait_for_end(process);
      return false;
    }
    sleep_on(arena_.given_back, seen, pause);
    if (arena_.given_back.load(std::memory_order_acquire) != seen) continue;
    reap();
    if (arena_.processes[process].pid.load() != 0 && is_gone(process)) process_ended(process);
    if (arena_.processes[process].pid.load() == 0) return false;
    if (signal_ != nullptr && *signal_ != 0) return false;
    if (Real::now() >= next_look) {
      if (waits_unasked(thread)) return true;
      pause = std::min(pause * 2, longest_pause);
      next_look = Real::now() + pause;
    }
    if (Real::now() - since < thread_limit) continue;
    const pid_t tid = number_of(thread);
    if (tid != 0 && Processes::is_starved(pids_[process], tid, thread_limit)) continue;
    result_.ended_because = fmt::format(
        "{} has run for {} s of real time without a call that waits; it computes, or spins on memory, or "
        "sleeps in a "
        "call that is not controlled",
        describe(static_cast<std::uint32_t>(&thread - arena_.threads.data())), thread_limit.count());
    return false;
  }
}

// As this process numbers it; 0: it is not known yet.
pid_t Coordinator::number_of(const ThreadRecord& thread) const {
  const pid_t pid = pids_[process_of(thread)];
  if (pid <= 0) return 0;
  const std::int32_t inside = read_once(thread.tid);
  const bool is_first = static_cast<std::uint32_t>(inside) == arena_.processes[process_of(thread)].pid.load();
  return is_first ? pid : Processes::thread_of(pid, inside);
}

Coordinator::Held Coordinator::hold(const ThreadRecord& thread) const {
  const pid_t pid = pids_[process_of(thread)];
  const pid_t tid = number_of(thread);
  if (tid == 0) return {};
  Held held{.call = KernelWait::prove(pid, tid), .loop = nullptr};
  if (!held) held.loop = MemorySpin::prove(pid, tid);
  return held;
}

// True: it was proved to sleep in the kernel, or to spin on memory, and waits now.
bool Coordinator::waits_unasked(ThreadRecord& thread) {
  if (any_begins()) return false;  // it makes a child, and may wait for that in real time
  Held held = hold(thread);
  if (state_of(thread) != ThreadState::running || !held) return false;
  ++(held.call ? result_.calls : result_.spins);
  thread.wait = held.call ? Wait::kernel : Wait::memory;
  thread.deadline = thread.ready_at = thread.look_at = no_time;
  thread.descriptor = held.call ? held.call->descriptor() : -1;
  thread.more = 0;
  if (held.call)
    std::snprintf(thread.what.data(), thread.what.size(), "%s", held.call->call());
  else
    std::snprintf(thread.what.data(), thread.what.size(), "a loop of %u instructions", held.loop->period());
  if (held.call) let_look(arena_, now_);  // what such calls wrote before was not counted
  held_[static_cast<std::uint32_t>(&thread - arena_.threads.data())] = std::move(held);
  set_state(thread, ThreadState::waiting);
  return true;
}

// True: a call that a thread sleeps in would end now.
bool Coordinator::look_at_kernel(Ticks at) {
  bool any = false;
  for (const auto& [number, held] : held_) {
    if (!held.call || !held.call->is_over()) continue;
    ThreadRecord& thread = arena_.threads[number];
    thread.ready_at = std::min(thread.ready_at, at);
    any = true;
  }
  return any;
}

// A process has one tracer, so those that we hold are let go: they spin, or sleep, while all else stands.
void Coordinator::stop_for_debugger() {
  now_ = std::max(now_, std::exchange(stop_at_, no_time));
  const std::string text = where_everything_waits(Stacks::without);
  for (auto& [thread, held] : held_) held = {};
  stopped_(text);
  for (auto& [thread, held] : held_) {
    const auto until = Real::now() + start_limit;
    while (!held && Real::now() < until && (signal_ == nullptr || *signal_ == 0))
      held = hold(arena_.threads[thread]);
    if (!held) result_.ended_because = describe(thread) + " did not go on where it was stopped";
  }
}

void Coordinator::after(ThreadRecord& thread) {
  network_.collect(process_of(thread));
  const Ticks at = std::max(now_, read_once(thread.local));
  if (thread.worked != 0 || thread.wait != Wait::packets)
    release_pollers(arena_, static_cast<std::uint32_t>(&thread - arena_.threads.data()), at);
  if (arena_.written != written_) {
    written_ = arena_.written;
    let_look(arena_, at);
    look_at_kernel(at);
    const bool to_others = std::exchange(sent_, arena_.sent) != arena_.sent;
    let_pollers_look(arena_, at, to_others ? std::nullopt : std::optional(process_of(thread)));
  }
  if (thread.helper == 0 && thread.worked != 0) {
    progress_ = std::max(progress_, at);
    looks_in_vain_ = 0;
  }
  if (state_of(thread) == ThreadState::ended) {
    set_state(thread, ThreadState::free);
    progress_ = now_;
    looks_in_vain_ = 0;
  }
  if (const std::uint32_t killed = read_once(arena_.ends); killed != killed_) {
    killed_ = killed;
    wait_for_killed();
  }
}

bool Coordinator::any_begins() const {
  const std::span threads(arena_.threads.data(), std::min(arena_.threads_used.load(), max_threads));
  return std::ranges::any_of(threads,
                             [](const ThreadRecord& each) { return state_of(each) == ThreadState::made; });
}

// Threads that were made and have not begun do so in real time, a moment later.
bool Coordinator::settle() {
  const auto until = Real::now() + start_limit;
  for (;;) {
    const std::uint32_t seen = arena_.given_back.load();
    if (!any_begins()) {
      find_processes();
      return true;
    }
    if (Real::now() > until) {
      result_.ended_because = "a thread that was made does not begin";
      return false;
    }
    sleep_on(arena_.given_back, seen, milliseconds(2));
    reap();
    find_processes();
    end_what_is_gone();
  }
}

// Nothing will happen by itself. Either all wait for each other, or something is under way in real time: a
// process that ends or begins.
bool Coordinator::look_around() {
  reap();
  end_what_is_gone();
  if (all_ended()) return false;
  if (++looks_in_vain_ > looks_before_deadlock) {
    result_.ended_because =
        "deadlock: every program waits for another\n" + where_everything_waits(Stacks::with);
    return false;
  }
  std::this_thread::sleep_for(look_interval);
  let_look(arena_, now_);
  return true;
}

void Coordinator::reap() {
  for (const Ended& ended : processes_.reap()) {
    auto& program = result_.programs[ended.program];
    program = {.ended = true, .status = ended.status, .at = now_};
    for (std::uint32_t i = 0; i < link::fabric::max_processes; ++i)
      if (pids_[i] == ended.pid) process_ended(i);
  }
}

// Processes that programs have forked, while they live: only then do they have a number.
void Coordinator::find_processes() {
  const std::uint32_t used = std::min(arena_.processes_used.load(), link::fabric::max_processes);
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint32_t inside = arena_.processes[i].pid.load();
    if (inside != 0 && inside != ~0u && pids_[i] == 0) pids_[i] = processes_.number_of(inside);
  }
}

bool Coordinator::is_gone(std::uint32_t process) const {
  return pids_[process] != 0 && Processes::has_ended(pids_[process]);
}

// Killed from outside while it waited, or ended before it began.
void Coordinator::end_what_is_gone() {
  const std::uint32_t used = std::min(arena_.processes_used.load(), link::fabric::max_processes);
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint32_t inside = arena_.processes[i].pid.load();
    if (inside == 0 || inside == ~0u) continue;
    if (is_gone(i) || (pids_[i] == 0 && processes_.number_of(inside) == 0)) process_ended(i);
  }
}

// It has said that it ends, or was killed. What comes next must not depend on how long that takes.
void Coordinator::wait_for_end(std::uint32_t process) {
  constexpr microseconds look{50};
  const auto until = Real::now() + start_limit;
  while (arena_.processes[process].pid.load() != 0 && Real::now() < until) {
    reap();
    if (arena_.processes[process].pid.load() != 0 && is_gone(process)) return process_ended(process);
    std::this_thread::sleep_for(look);
  }
}

void Coordinator::wait_for_killed() {
  const std::uint32_t used = std::min(arena_.processes_used.load(), link::fabric::max_processes);
  for (std::uint32_t i = 0; i < used; ++i)
    if (arena_.processes[i].pid.load() != 0 && arena_.processes[i].ends.load() != 0) wait_for_end(i);
}

void Coordinator::process_ended(std::uint32_t number) {
  network_.process_ended(number);
  for (std::uint32_t i = 0; i < std::min(arena_.threads_used.load(), max_threads); ++i) {
    ThreadRecord& thread = arena_.threads[i];
    if (process_of(thread) == number && state_of(thread) != ThreadState::free) {
      if (state_of(thread) == ThreadState::running)
        now_ = std::clamp(read_once(thread.local), now_, std::max(now_, longest_run));
      set_state(thread, ThreadState::free);
      held_.erase(i);
    }
  }
  network_.collect(number);
  arena_.processes[number].nic_slot = 0;
  arena_.processes[number].timer_due = arena_.processes[number].alarm_due = no_time;
  arena_.processes[number].ends.store(0);
  arena_.processes[number].pid.store(0);
  pids_[number] = 0;
  progress_ = now_;
  looks_in_vain_ = 0;
  let_look(arena_, now_);
  look_at_kernel(now_);
  // Its parent may wait for it, or for the signal of its end.
  const std::uint32_t parent = read_once(arena_.processes[number].parent);
  for (std::uint32_t i = 0; i < std::min(arena_.threads_used.load(), max_threads); ++i) {
    ThreadRecord& thread = arena_.threads[i];
    if (state_of(thread) != ThreadState::waiting) continue;
    const bool parents = parent != 0 && process_of(thread) == parent - 1 && thread.helper == 0;
    if (parents || thread.wait == Wait::child) thread.ready_at = std::min(thread.ready_at, now_);
  }
}

std::string Coordinator::describe(std::uint32_t number) const {
  const ThreadRecord& thread = arena_.threads[number];
  const ProcessRecord& process = arena_.processes[process_of(thread)];
  const Program& program = scenario_.programs[process.program % scenario_.programs.size()];
  return fmt::format("{} on {}, process {}, thread {}", program.name, program.host, pids_[process_of(thread)],
                     thread.tid);
}

std::string Coordinator::wait_of(std::uint32_t number) const {
  const ThreadRecord& thread = arena_.threads[number];
  const std::string_view what(thread.what.data(), ::strnlen(thread.what.data(), thread.what.size()));
  std::string text = fmt::format("{} in {}", text_of(thread.wait), what);
  if (const int descriptor = read_once(thread.descriptor); descriptor >= 0) {
    text += fmt::format(" of descriptor {}", descriptor);
    const std::string name = descriptor_name(pids_[process_of(thread)], descriptor);
    if (!name.empty()) text += " (" + name + ")";
    if (thread.more != 0) text += fmt::format(" and {} more", thread.more);
  }
  return text + fmt::format(" since {:.3f} us", fabric::sim::to_us(thread.local));
}

// Where it is, as it says itself; empty: it cannot say, because we hold it or it does not answer.
std::string Coordinator::report_of(std::uint32_t number, link::fabric::Report wanted) {
  ThreadRecord& thread = arena_.threads[number];
  if (thread.wait == Wait::memory || thread.wait == Wait::kernel) return {};
  arena_.report_wanted = wanted;
  arena_.report.front() = 0;
  set_state(thread, ThreadState::reporting);
  thread.go.fetch_add(1, std::memory_order_acq_rel);
  ::syscall(SYS_futex, &thread.go, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  const auto until = Real::now() + report_limit;
  while (state_of(thread) == ThreadState::reporting && Real::now() < until) {
    const std::uint32_t seen = arena_.given_back.load(std::memory_order_acquire);
    if (state_of(thread) == ThreadState::reporting) sleep_on(arena_.given_back, seen, milliseconds(5));
  }
  if (state_of(thread) != ThreadState::waiting) return {};
  const auto& report = arena_.report;
  return waiting_stack({report.data(), ::strnlen(report.data(), report.size())}, "      ");
}

// Each waiting thread; its process as this machine numbers it, its thread as its host does.
std::string Coordinator::where_everything_waits(Stacks stacks) {
  std::string text;
  std::array<bool, link::fabric::max_processes> seen{};
  for (std::uint32_t i = 0; i < std::min(arena_.threads_used.load(), max_threads); ++i) {
    if (state_of(arena_.threads[i]) != ThreadState::waiting) continue;
    text += fmt::format("  {}: waits for {}\n", describe(i), wait_of(i));
    if (stacks == Stacks::without) continue;
    bool& process = seen[process_of(arena_.threads[i])];
    text += report_of(
        i, std::exchange(process, true) ? link::fabric::Report::stack : link::fabric::Report::stack_and_nic);
  }
  return text;
}

}  // namespace weir::twin

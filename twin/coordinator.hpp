// The clock of a run. It lets one thread of all programs run at a time, and moves virtual time to whatever is
// next: an event of the network, or the end of a thread's wait. Where real time is looked at, it is to notice
// that something does not go on; it never decides what happens.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "link/fabric/arena.hpp"
#include "twin/kernel_wait.hpp"
#include "twin/live_network.hpp"
#include "twin/memory_spin.hpp"
#include "twin/processes.hpp"
#include "twin/scenario.hpp"
#include "twin/schedule.hpp"

namespace weir::twin {

struct ProgramResult {
  bool ended = false;
  int status = 0;  // as of waitpid
  Ticks at = 0;
};

struct RunResult {
  std::vector<ProgramResult> programs;
  Ticks end = 0;
  std::uint64_t grants = 0;
  std::uint64_t spins = 0;  // waits that were loops on memory, proved
  std::uint64_t calls = 0;  // waits in calls of the kernel that the library does not stand in front of
  // Why two runs may differ; empty: nothing is known that could make them.
  std::vector<std::string> uncontrolled;
  // Why the run was ended before its programs had ended; empty: it was not.
  std::string ended_because;
  bool interrupted = false;  // by a signal to this process
};

class Coordinator {
 public:
  // All of them outlive it. The programs have not been started.
  Coordinator(link::fabric::Arena& arena, LiveNetwork& network, Processes& processes,
              const Scenario& scenario);

  // The run ends when that becomes something else than 0, from a signal handler.
  void end_when(const volatile std::sig_atomic_t& signal) { signal_ = &signal; }
  // At that virtual time `stopped` is called once, with what every thread waits for, and the number of its
  // process on this machine. The run goes on when it returns; until then debuggers may attach.
  void stop_at(Ticks time, std::function<void(const std::string&)> stopped);
  // Starts the programs, and returns when they have ended, or cannot go on. The error is text to print.
  std::expected<RunResult, std::string> run();

 private:
  // A thread that waits without having asked us, stopped.
  struct Held {
    std::unique_ptr<KernelWait> call;
    std::unique_ptr<MemorySpin> loop;
    explicit operator bool() const { return call != nullptr || loop != nullptr; }
  };
  std::expected<void, std::string> start_programs();
  std::expected<void, std::string> wait_for_first_thread(std::uint32_t program);
  bool step();
  void advance_network(Ticks until);
  void grant(const Turn& turn, Ticks network_next);
  bool wait_for_baton(link::fabric::ThreadRecord& thread);
  void after(link::fabric::ThreadRecord& thread);
  void stop_for_debugger();
  pid_t number_of(const link::fabric::ThreadRecord& thread) const;
  Held hold(const link::fabric::ThreadRecord& thread) const;
  bool look_at_kernel(Ticks at);
  bool waits_unasked(link::fabric::ThreadRecord& thread);
  bool any_begins() const;
  bool settle();
  bool look_around();
  void reap();
  void process_ended(std::uint32_t process);
  void find_processes();
  void end_what_is_gone();
  bool is_gone(std::uint32_t process) const;
  void wait_for_end(std::uint32_t process);
  void wait_for_killed();
  bool all_ended() const;
  enum class Stacks : bool { without, with };
  std::string where_everything_waits(Stacks stacks);
  std::string report_of(std::uint32_t thread, link::fabric::Report wanted);
  std::string describe(std::uint32_t thread) const;
  std::string wait_of(std::uint32_t thread) const;

  link::fabric::Arena& arena_;
  LiveNetwork& network_;
  Processes& processes_;
  const Scenario& scenario_;
  RunResult result_;
  std::map<std::uint32_t, Held> held_;  // by thread
  const volatile std::sig_atomic_t* signal_ = nullptr;
  Ticks stop_at_ = link::fabric::no_time;
  std::function<void(const std::string&)> stopped_;
  Ticks now_ = 0;
  Ticks progress_ = 0;  // when something last happened that was more than looking
  std::uint32_t written_ = 0, sent_ = 0, killed_ = 0;
  std::array<pid_t, link::fabric::max_processes> pids_{};  // as this process numbers them; 0: unknown
  unsigned looks_in_vain_ = 0;
};

}  // namespace weir::twin

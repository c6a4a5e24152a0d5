#include "twin/stopped_thread.hpp"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace weir::twin {
namespace {

bool is_own_child(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return std::atoi(line.c_str() + line.find_last_of(" \t")) == ::getpid();
  return false;
}

// Waits until the thread stops, and returns the signal and, above it, the event; nullopt: it has ended. While
// we trace it, its parent cannot see that, so we take the news, and the kernel then tells the parent. Not if
// we are the parent.
std::optional<int> next_stop(pid_t process, pid_t thread) {
  siginfo_t news{};
  const auto id = static_cast<id_t>(thread);
  if (::waitid(P_PID, id, &news, WSTOPPED | WEXITED | WNOWAIT | __WALL) != 0) return std::nullopt;
  const bool ended = news.si_code != CLD_TRAPPED && news.si_code != CLD_STOPPED;
  if (ended && thread == process && is_own_child(process)) return std::nullopt;
  siginfo_t taken{};
  ::waitid(P_PID, id, &taken, (ended ? WEXITED : WSTOPPED) | WNOHANG | __WALL);
  return ended ? std::nullopt : std::optional(news.si_status);
}

}  // namespace

std::unique_ptr<StoppedThread> StoppedThread::stop(pid_t process, pid_t thread) {
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return nullptr;
  ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
  std::unique_ptr<StoppedThread> made(new StoppedThread(process, thread));
  return made->wait_for_stop() ? std::move(made) : nullptr;
}

StoppedThread::~StoppedThread() {
  const auto detach = [&] {
    return ::ptrace(PTRACE_DETACH, thread_, nullptr, static_cast<std::intptr_t>(signal_)) == 0;
  };
  while (attached_ && !detach() && errno == ESRCH) attached_ = next_stop(process_, thread_).has_value();
}

std::optional<user_regs_struct> StoppedThread::registers() const {
  user_regs_struct found{};
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &found) != 0) return std::nullopt;
  return found;
}

bool StoppedThread::step() {
  return ::ptrace(PTRACE_SINGLESTEP, thread_, nullptr, nullptr) == 0 && wait_for_stop();
}

// False: it has ended, or stopped because of a signal.
bool StoppedThread::wait_for_stop() {
  const auto stop = next_stop(process_, thread_);
  attached_ = stop.has_value();
  if (!attached_) return false;
  constexpr int first_event = 1 << 8;
  signal_ = *stop >= first_event || *stop == SIGTRAP ? 0 : *stop;
  return signal_ == 0;
}

}  // namespace weir::twin

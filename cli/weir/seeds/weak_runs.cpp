#include "cli/weir/seeds/weak_runs.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weir::command {
namespace {

constexpr std::size_t max_kept_bytes = 16'384, max_kept_lines = 12;

std::vector<std::string> last_lines_of(int file) {
  const off_t bytes = ::lseek(file, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, bytes - static_cast<off_t>(max_kept_bytes));
  std::string text(static_cast<std::size_t>(bytes - from), '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), from);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end != at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (lines.size() > max_kept_lines)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(max_kept_lines));
  return lines;
}

[[noreturn]] void become_program(Launch launch, const std::optional<rnic::weak::Plan>& plan, int output) {
  ::setpgid(0, 0);
  if (const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC); nothing >= 0) ::dup2(nothing, 0);
  ::dup2(output, 1);
  ::dup2(output, 2);
  ::unsetenv("WEIR_WEAK");
  launch.weak = plan.has_value();
  if (plan) launch.weak_words = rnic::weak::text_of(*plan);
  const int status = become("seeds", launch);
  std::fflush(nullptr);
  ::_exit(status);
}

// False: it has not ended by then.
bool ends_by(pid_t child, std::chrono::steady_clock::time_point limit) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  if (fd < 0) return true;  // an old kernel: waits without a limit
  pollfd ended{fd, POLLIN, 0};
  int ready = 0;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - std::chrono::steady_clock::now());
    ready = ::poll(&ended, 1, static_cast<int>(std::max<long>(0, left.count())));
  } while (ready < 0 && errno == EINTR);
  ::close(fd);
  return ready != 0;
}

}  // namespace

std::string text_of(const RunEnded& run, std::chrono::seconds limit) {
  if (run.hung) return "no end after " + std::to_string(limit.count()) + " s";
  if (run.signal == 0) return "exit status " + std::to_string(run.status);
  const char* const name = ::sigabbrev_np(run.signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(run.signal);
}

RunEnded run_once(const Launch& launch, const std::optional<rnic::weak::Plan>& plan,
                  std::chrono::seconds limit) {
  RunEnded ended;
  const int output = ::memfd_create("weir-seeds", MFD_CLOEXEC);
  const auto begun = std::chrono::steady_clock::now();
  std::fflush(nullptr);
  const pid_t child = output < 0 ? -1 : ::fork();
  if (child == 0) become_program(launch, plan, output);
  if (child < 0) {
    ended.last_lines.push_back(std::string("cannot start it: ") + std::strerror(errno));
    if (output >= 0) ::close(output);
    return ended;
  }
  ::setpgid(child, child);
  ended.hung = !ends_by(child, begun + limit);
  ::kill(-child, SIGKILL);  // what it left behind, too
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && !ended.hung) ended.signal = WTERMSIG(status);
  if (WIFEXITED(status) && !ended.hung) ended.status = WEXITSTATUS(status);
  ended.took = std::chrono::steady_clock::now() - begun;
  ended.last_lines = last_lines_of(output);
  ::close(output);
  return ended;
}

}  // namespace weir::command

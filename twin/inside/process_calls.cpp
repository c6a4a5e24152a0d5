// fork, and waiting for children. A child is a process of the same host, ready at its parent's time; the
// parent goes on first.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <vector>

#include "twin/inside/baton.hpp"

using namespace weir::twin;

namespace {

std::vector<char*> words_of(const char* first, va_list list) {
  std::vector<char*> words;
  for (const char* word = first; word != nullptr; word = va_arg(list, const char*))
    words.push_back(const_cast<char*>(word));
  words.push_back(nullptr);
  return words;
}

template <class Call>
auto wait_for_child(int options, Call call) -> decltype(call(options)) {
  for (;;) {
    const auto ended = call(options | WNOHANG);
    if (ended != 0 || (options & WNOHANG) != 0) return ended;
    if (wait_for({.kind = Wait::child, .what = "waitpid"})) return errno = EINTR, -1;
  }
}

}  // namespace

extern "C" {

pid_t fork() noexcept {
  if (!controlled()) return WEIR_NEXT(fork)();
  ProcessRecord* const child = new_process();
  ThreadRecord* const thread = child != nullptr ? new_thread(*child) : nullptr;
  if (thread == nullptr) return errno = EAGAIN, -1;
  child->program = process().program;
  child->host = process().host;
  child->parent = static_cast<std::uint32_t>(&process() - arena().processes.data()) + 1;
  pid_t made;
  {
    const Outside handlers;  // of pthread_atfork
    made = WEIR_NEXT(fork)();
  }
  if (made == 0) {
    become_process(*child, *thread);
    return 0;
  }
  if (made < 0) {
    child->pid.store(0);
    thread->state.store(static_cast<std::uint32_t>(weir::link::fabric::ThreadState::free));
    return made;
  }
  worked();
  return made;
}

void _exit(int status) {
  if (controlled()) end_process();
  ::syscall(SYS_exit_group, status);
  __builtin_unreachable();
}
void _Exit(int status) noexcept { ::_exit(status); }

// Its child would share our memory, and run before we do.
pid_t vfork() noexcept { return ::fork(); }

int system(const char* command) {
  if (!controlled() || command == nullptr) return WEIR_NEXT(system)(command);
  const pid_t child = ::fork();
  if (child < 0) return -1;
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = -1;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return status;
}

int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  const CounterReadable readable;
  return WEIR_NEXT(execve)(path, arguments, environment);
}
int execv(const char* path, char* const* arguments) noexcept { return ::execve(path, arguments, environ); }
int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  const CounterReadable readable;
  return WEIR_NEXT(execvpe)(file, arguments, environment);
}
int execvp(const char* file, char* const* arguments) noexcept { return ::execvpe(file, arguments, environ); }
int fexecve(int file, char* const* arguments, char* const* environment) noexcept {
  const CounterReadable readable;
  return WEIR_NEXT(fexecve)(file, arguments, environment);
}
int execl(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const auto words = words_of(first, list);
  va_end(list);
  return ::execve(path, words.data(), environ);
}
int execlp(const char* file, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const auto words = words_of(first, list);
  va_end(list);
  return ::execvpe(file, words.data(), environ);
}
int execle(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const auto words = words_of(first, list);
  char* const* const environment = va_arg(list, char* const*);
  va_end(list);
  return ::execve(path, words.data(), environment);
}

pid_t waitpid(pid_t pid, int* status, int options) {
  if (!controlled()) return WEIR_NEXT(waitpid)(pid, status, options);
  return wait_for_child(options, [&](int how) { return WEIR_NEXT(waitpid)(pid, status, how); });
}
pid_t wait(int* status) {
  if (!controlled()) return WEIR_NEXT(wait)(status);
  return ::waitpid(-1, status, 0);
}
pid_t wait3(int* status, int options, struct rusage* usage) noexcept {
  return ::wait4(-1, status, options, usage);
}
int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  if (!controlled() || (options & WNOHANG) != 0) return WEIR_NEXT(waitid)(type, id, info, options);
  siginfo_t own{};
  siginfo_t& found = info != nullptr ? *info : own;
  for (;;) {
    found.si_pid = 0;
    const int result = WEIR_NEXT(waitid)(type, id, &found, options | WNOHANG);
    if (result != 0 || found.si_pid != 0) return result;
    if (wait_for({.kind = Wait::child, .what = "waitid"})) return errno = EINTR, -1;
  }
}
pid_t wait4(pid_t pid, int* status, int options, struct rusage* usage) noexcept {
  if (!controlled()) return WEIR_NEXT(wait4)(pid, status, options, usage);
  return wait_for_child(options, [&](int how) { return WEIR_NEXT(wait4)(pid, status, how, usage); });
}
}

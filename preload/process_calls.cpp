// The C library's calls after which another program, or another process, has the descriptors. Entry points of
// programs that we did not write.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "preload/next_call.hpp"
#include "sockets/connection_objects.hpp"
#include "sockets/connections.hpp"
#include "sockets/event_set.hpp"
#include "sockets/report.hpp"
#include "sockets/runtime.hpp"
#include "sockets/settings.hpp"

using weir::sockets::Connection;
using weir::sockets::ConnectionObjects;
using weir::sockets::Connections;
using weir::sockets::EventSet;
using weir::sockets::Reason;

namespace {

// Connections that stay open in an executed or spawned program return to TCP first.
void before_spawn() {
  const int before = errno;
  ConnectionObjects::each([](int fd, Connection& it) {
    if (it.plain() || (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) return;
    it.stay(fd, Reason::exec);
    EventSet::interest_to_kernel_everywhere(it);  // the other program may have the set, too
  });
  errno = before;
}

bool reported = false;

template <class Call>
int execute(Call call) {
  before_spawn();
  Connections::part_all(true);
  Connections::leave_holders(true);
  const int result = call();
  const int error = errno;
  Connections::join_holders();
  errno = error;
  return result;
}

void before_exit() {
  if (Connections::stepped_aside()) return;
  if (weir::sockets::settings().report && !std::exchange(reported, true)) {
    const std::string text = weir::sockets::report();
    (void)!::write(STDERR_FILENO, text.data(), text.size());
  }
  Connections::part_all(false);
  Connections::leave_holders(false);
  weir::sockets::leave_table();
}
// Reads the settings before the program can change its environment.
__attribute__((constructor)) void at_start() { (void)weir::sockets::settings(); }
__attribute__((destructor)) void at_exit() { before_exit(); }

std::vector<char*> words_of(const char* first, va_list arguments) {
  std::vector<char*> words{const_cast<char*>(first)};
  while (words.back() != nullptr) words.push_back(va_arg(arguments, char*));
  return words;
}

}  // namespace

extern "C" {

// Before the handlers of pthread_atfork(): the NIC's handlers stop it, and the peer must answer before that.
pid_t fork() noexcept {
  WEIR_NEXT(pid_t(), fork);
  Connections::leave_before_fork();
  return call();
}

// A child of vfork() shares our memory and would forget in it every descriptor that it closes.
pid_t vfork() noexcept { return ::fork(); }

int execve(const char* path, char* const* words, char* const* environment) noexcept {
  WEIR_NEXT(int(const char*, char* const*, char* const*), execve);
  return execute([&] { return call(path, words, environment); });
}

int execv(const char* path, char* const* words) noexcept {
  WEIR_NEXT(int(const char*, char* const*), execv);
  return execute([&] { return call(path, words); });
}

int execvp(const char* file, char* const* words) noexcept {
  WEIR_NEXT(int(const char*, char* const*), execvp);
  return execute([&] { return call(file, words); });
}

int execvpe(const char* file, char* const* words, char* const* environment) noexcept {
  WEIR_NEXT(int(const char*, char* const*, char* const*), execvpe);
  return execute([&] { return call(file, words, environment); });
}

int fexecve(int fd, char* const* words, char* const* environment) noexcept {
  WEIR_NEXT(int(int, char* const*, char* const*), fexecve);
  return execute([&] { return call(fd, words, environment); });
}

int execl(const char* path, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const auto words = words_of(first, arguments);
  va_end(arguments);
  return ::execv(path, words.data());
}

int execlp(const char* file, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const auto words = words_of(first, arguments);
  va_end(arguments);
  return ::execvp(file, words.data());
}

int execle(const char* path, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const auto words = words_of(first, arguments);
  char* const* const environment = va_arg(arguments, char* const*);
  va_end(arguments);
  return ::execve(path, words.data(), environment);
}

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* words, char* const* environment) {
  WEIR_NEXT(int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                char* const*, char* const*),
            posix_spawn);
  before_spawn();
  return call(pid, path, actions, attributes, words, environment);
}

int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* words, char* const* environment) {
  WEIR_NEXT(int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                char* const*, char* const*),
            posix_spawnp);
  before_spawn();
  return call(pid, file, actions, attributes, words, environment);
}

int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t* actions, int fd, int as) noexcept {
  WEIR_NEXT(int(posix_spawn_file_actions_t*, int, int), posix_spawn_file_actions_adddup2);
  if (const weir::sockets::Use use(fd); use) use->stay(fd, Reason::exec);
  return call(actions, fd, as);
}

void _exit(int status) {
  static auto* const call = weir::preload::next_call<void(int)>("_exit");
  before_exit();
  call(status);
  __builtin_unreachable();
}

void _Exit(int status) noexcept { ::_exit(status); }

int system(const char* command) {
  WEIR_NEXT(int(const char*), system);
  before_spawn();
  return call(command);
}

FILE* popen(const char* command, const char* mode) {
  WEIR_NEXT(FILE * (const char*, const char*), popen);
  before_spawn();
  return call(command, mode);
}

}  // extern "C"

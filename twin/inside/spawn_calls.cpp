// posix_spawn and popen. The C library makes the child, which runs on until it has loaded this library; the
// parent has a record ready for it, so that it is one more thread that has been made (Coordinator::settle).
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "twin/inside/baton.hpp"

namespace weir::twin {
namespace {

using link::fabric::ThreadState;

struct Expected {
  ProcessRecord* process = nullptr;
  ThreadRecord* thread = nullptr;
};

// The child of this process that is made next. Its thread is nullptr if there are too many.
Expected expect_child() {
  Expected child{.process = new_process()};
  if (child.process == nullptr) return child;
  child.process->program = process().program;
  child.process->host = process().host;
  child.process->parent = static_cast<std::uint32_t>(&process() - arena().processes.data()) + 1;
  child.thread = new_thread(*child.process);
  if (child.thread == nullptr) child.process->pid.store(0);
  return child;
}

void forget(const Expected& child) {
  child.thread->state.store(static_cast<std::uint32_t>(ThreadState::free));
  child.process->pid.store(0);
}

bool has(char* const* environment, const char* name) {
  const std::size_t length = std::strlen(name);
  for (char* const* each = environment; each != nullptr && *each != nullptr; ++each)
    if (std::strncmp(*each, name, length) == 0 && (*each)[length] == '=') return true;
  return false;
}

// Whether the child will load this library.
bool comes_to_us(char* const* environment) {
  return has(environment, "LD_PRELOAD") && has(environment, link::fabric::arena_variable);
}

template <class Call>
int spawn(pid_t* pid, char* const* environment, Call call) {
  if (!controlled()) return call(pid);
  if (!comes_to_us(environment)) {
    ++process().uncontrolled;
    return call(pid);
  }
  const Expected child = expect_child();
  if (child.thread == nullptr) return EAGAIN;
  pid_t made = 0;
  const CounterReadable readable;
  const int error = call(&made);
  if (error != 0) return forget(child), error;
  std::uint32_t unknown = ~0u;
  child.process->pid.compare_exchange_strong(unknown, static_cast<std::uint32_t>(made));
  if (pid != nullptr) *pid = made;
  worked();
  return 0;
}

}  // namespace
}  // namespace weir::twin

using namespace weir::twin;

extern "C" {

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return spawn(pid, environment, [&](pid_t* made) {
    return WEIR_NEXT(posix_spawn)(made, path, actions, attributes, arguments, environment);
  });
}
int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return spawn(pid, environment, [&](pid_t* made) {
    return WEIR_NEXT(posix_spawnp)(made, file, actions, attributes, arguments, environment);
  });
}

FILE* popen(const char* command, const char* mode) {
  FILE* stream = nullptr;
  const int error = spawn(nullptr, environ, [&](pid_t* made) {
    stream = WEIR_NEXT(popen)(command, mode);
    *made = -1;  // its own affair
    return stream != nullptr ? 0 : errno;
  });
  if (error != 0) errno = error;
  return stream;
}
}

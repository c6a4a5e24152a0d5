#include "kv/background.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace weir::kv {

namespace {

// Waits until the server is ready or has ended.
int wait_until_ready(int server, pid_t pid) {
  char word = 0;
  ssize_t got = 0;
  while ((got = ::read(server, &word, 1)) < 0 && errno == EINTR) {
  }
  ::close(server);
  if (got == 1) return 0;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1;
}

}  // namespace

Background::~Background() {
  if (starter_ >= 0) ::close(starter_);
}

std::optional<int> Background::begin() {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) {
    std::fprintf(stderr, "weir-server: cannot go into the background: %s\n", std::strerror(errno));
    return 1;
  }
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) {
    std::fprintf(stderr, "weir-server: cannot go into the background: %s\n", std::strerror(errno));
    ::close(pipe[0]);
    ::close(pipe[1]);
    return 1;
  }
  if (pid > 0) {
    ::close(pipe[1]);
    return wait_until_ready(pipe[0], pid);
  }
  ::close(pipe[0]);
  starter_ = pipe[1];
  ::setsid();
  return std::nullopt;
}

void Background::ready() {
  const int starter = std::exchange(starter_, -1);
  // First our output ends: a caller that waits for its end then gets it together with the exit code.
  if (const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0) {
    std::fflush(nullptr);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
    if (null > STDERR_FILENO) ::close(null);
  }
  // If the starter was killed nobody needs the message; SIGPIPE is ignored.
  while (::write(starter, "r", 1) < 0 && errno == EINTR) {
  }
  ::close(starter);
}

}  // namespace weir::kv

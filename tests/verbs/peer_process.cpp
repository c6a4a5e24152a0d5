#include "peer_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

extern char** environ;

namespace weir::verbs_test {

PeerProcess::PeerProcess() {
  use_own_runtime_directory();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  control_ = ends[0];
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // Onto itself it would keep its close-on-exec flag, so through a number that cannot be taken.
  const int passed = ::fcntl(ends[1], F_DUPFD_CLOEXEC, control_fd + 1);
  ::posix_spawn_file_actions_adddup2(&actions, passed, control_fd);
  static char name[] = VERBS_PEER;
  char* arguments[] = {name, nullptr};
  if (::posix_spawn(&pid_, VERBS_PEER, &actions, nullptr, arguments, environ) != 0) std::abort();
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(passed);
  ::close(ends[1]);
}

PeerProcess::~PeerProcess() {
  kill();
  ::close(control_);
}

void PeerProcess::start(const Request& request) const {
  EXPECT_EQ(::send(control_, &request, sizeof request, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof request));
}

Reply PeerProcess::finish() const {
  Reply reply;
  EXPECT_TRUE(readable(control_, 60'000)) << "the peer does not answer";
  if (::recv(control_, &reply, sizeof reply, MSG_DONTWAIT) != static_cast<ssize_t>(sizeof reply)) {
    ADD_FAILURE() << "the peer ended";
    reply.error = ESRCH;
  }
  return reply;
}

void PeerProcess::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void PeerProcess::stop() {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
  ASSERT_TRUE(WIFSTOPPED(status));
}

void PeerProcess::go_on() { ::kill(pid_, SIGCONT); }

void PeerProcess::exec_again() { ::kill(pid_, SIGUSR1); }

int PeerProcess::leave(const Request& how) {
  (void)order(how);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace weir::verbs_test

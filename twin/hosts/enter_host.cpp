#include "twin/hosts/enter_host.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace weir::hosts {
namespace {

// What a program in a host may do, though it is no root: `ip`, tcpdump, ping, ports below 1024, mounts, and
// entering other hosts.
constexpr int capabilities[] = {CAP_NET_ADMIN, CAP_NET_RAW, CAP_NET_BIND_SERVICE, CAP_SYS_ADMIN,
                                CAP_SYS_CHROOT};

// What a process tells the one that waits for it: a step that failed and its errno, or that all is well.
struct Outcome {
  pid_t pid = 0;
  int error = 0;
  std::array<char, 64> step{};
};

Outcome failed(const char* step) {
  Outcome outcome{0, errno, {}};
  std::string_view(step).copy(outcome.step.data(), outcome.step.size() - 1);
  return outcome;
}

void send(int fd, const Outcome& outcome) {
  [[maybe_unused]] const auto sent = ::write(fd, &outcome, sizeof outcome);
}

bool is_own(Namespace kind, int fd) {
  struct stat wanted{}, mine{};
  const auto here = own(kind);
  return here && ::fstat(fd, &wanted) == 0 && ::fstat(here->get(), &mine) == 0 &&
         wanted.st_ino == mine.st_ino && wanted.st_dev == mine.st_dev;
}

// A program that is not root's keeps only what is ambient when it is executed.
bool keep_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return false;
  for (const int capability : capabilities)
    sets[static_cast<unsigned>(capability) / 32].inheritable |= 1U
                                                                << (static_cast<unsigned>(capability) % 32);
  if (::syscall(SYS_capset, &header, sets.data()) != 0) return false;
  for (const int capability : capabilities)
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0) return false;
  return true;
}

// In the child. The process that forked it is gone or going; the caller's report shows whether the caller is.
Outcome enter(const HostNamespaces& host, const std::string& directory) {
  for (const auto& [kind, step] : {std::pair{network, "enter the network"},
                                   {hostname, "take the name"},
                                   {ipc, "enter the IPC namespace"},
                                   {mounts, "enter the mounts"}})
    if (::setns(host[kind].get(), flag_of(kind)) != 0) return failed(step);
  if (::chdir(directory.c_str()) != 0) return failed("find the working directory");
  if (!keep_capabilities()) return failed("keep the capabilities");
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return failed("end with its parent");
  return {};
}

}  // namespace

Result<pid_t> fork_into(const HostNamespaces& host) {
  std::error_code error;
  const std::string directory = std::filesystem::current_path(error);
  if (error) return failure_errno(error.value(), "the working directory cannot be found; go to another");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failure_errno(errno, "a pipe");
  link::UniqueFd read(ends[0]), write(ends[1]);
  // A PID namespace is for the children of the process that enters it, so another process enters it, and
  // makes its child a child of the caller's.
  const pid_t between = ::fork();
  if (between < 0) return failure_errno(errno, "fork");
  if (between == 0) {
    if ((!is_own(users, host[users].get()) && ::setns(host[users].get(), CLONE_NEWUSER) != 0) ||
        ::setns(host[processes].get(), CLONE_NEWPID) != 0) {
      send(write.get(), failed("enter the network's namespaces"));
      ::_exit(1);
    }
    const auto child =
        static_cast<pid_t>(::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, 0));
    if (child != 0) {
      if (child < 0) send(write.get(), failed("start a process in it; it may just have ended"));
      // The child's number: it does not know it.
      if (child > 0) send(write.get(), {child, 0, {}});
      ::_exit(child < 0);
    }
    read.reset();
    const Outcome outcome = enter(host, directory);
    send(write.get(), outcome);  // and is killed by SIGPIPE if the caller is gone
    if (outcome.error != 0) ::_exit(1);
    return 0;
  }
  write.reset();
  pid_t child = 0;
  Outcome outcome, wrong;
  while (true) {
    const ssize_t count = ::read(read.get(), &outcome, sizeof outcome);
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof outcome) break;
    if (outcome.pid != 0) child = outcome.pid;
    if (outcome.error != 0) wrong = outcome;
  }
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (wrong.error == 0 && child != 0) return child;
  if (child != 0) ::waitpid(child, nullptr, 0);
  if (wrong.error == 0) return failure(Cause::no_network, "the network ended meanwhile");
  return failure_errno(wrong.error, std::string("a process cannot ") + wrong.step.data());
}

void set_host_variables(const std::string& folder, const std::string& host) {
  ::setenv("WEIR_FABRIC", folder.c_str(), 1);
  ::setenv("WEIR_FABRIC_HOST", host.c_str(), 1);
  ::setenv("HOSTNAME", host.c_str(), 1);
}

}  // namespace weir::hosts

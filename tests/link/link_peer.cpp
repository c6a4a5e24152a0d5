// A second process for process_test: attaches to the directory it is given, prints its slot, does what it is
// asked, and detaches when its standard input ends.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "link/same_host.hpp"
#include "tests/link/peer_protocol.hpp"

using namespace weir::link;

namespace {

// A child that holds copies of whatever its parent had open, until the pipe on standard input ends. It ends
// by the system call: ThreadSanitizer's _exit flushes stdout, which another thread may have locked when this
// was cloned.
pid_t linger(bool by_clone) {
  const pid_t child = by_clone ? raw_fork() : ::fork();
  if (child != 0) return child;
  char byte;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  ::syscall(SYS_exit_group, 0);
  __builtin_unreachable();
}

}  // namespace

int main(int, char** argv) {
  SameHostLink::Options options{.directory = argv[1]};
  std::unique_ptr<SameHostLink> link;
  const auto reply_pid = [](const NeighbourPtr& to, const Message& request, pid_t pid) {
    (void)to->reply(request, std::as_bytes(std::span(&pid, 1)));
  };
  options.messages = {
      {peer::echo,
       [](const NeighbourPtr& from, Message&& message) { (void)from->reply(message, message.body); }},
      {peer::never_reply, [](const NeighbourPtr&, Message&&) {}},
      {peer::fork_lingering_child,
       [&](const NeighbourPtr& from, Message&& message) { reply_pid(from, message, linger(false)); }},
      {peer::clone_lingering_child,
       [&](const NeighbourPtr& from, Message&& message) { reply_pid(from, message, linger(true)); }},
      {peer::fork_exiting_child,
       [&](const NeighbourPtr& from, Message&& message) {
         const pid_t child = ::fork();
         if (child == 0) {
           link.reset();  // as a static destructor would
           ::_exit(0);
         }
         ::waitpid(child, nullptr, 0);
         reply_pid(from, message, child);
       }},
  };
  auto attached = SameHostLink::attach(std::move(options));
  if (!attached) {
    std::fprintf(stderr, "%s\n", attached.error().what.c_str());
    return 1;
  }
  link = std::move(*attached);
  std::printf("%u\n", link->slot());
  std::fflush(stdout);
  char byte;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}

#include "twin/hosts/namespaces.hpp"

#include <fcntl.h>
#include <sched.h>

#include <iterator>
#include <string>

namespace weir::hosts {
namespace {

struct Kind {
  const char* file;
  int flag;
  const char* what;
};
constexpr Kind kinds[] = {{"user", CLONE_NEWUSER, "user"},  {"pid_for_children", CLONE_NEWPID, "PID"},
                          {"net", CLONE_NEWNET, "network"}, {"mnt", CLONE_NEWNS, "mount"},
                          {"uts", CLONE_NEWUTS, "UTS"},     {"ipc", CLONE_NEWIPC, "IPC"}};
static_assert(std::size(kinds) == namespaces);

}  // namespace

int flag_of(Namespace which) { return kinds[which].flag; }

Result<link::UniqueFd> own(Namespace which) {
  link::UniqueFd fd(
      ::open((std::string("/proc/self/ns/") + kinds[which].file).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return failure_errno(errno, std::string("cannot open a ") + kinds[which].what + " namespace");
  return fd;
}

}  // namespace weir::hosts

#include "twin/hosts/user_namespace.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string_view>

#include "link/unique_fd.hpp"

namespace weir::hosts {
namespace {

// 0 bytes where there is no such file.
std::string first_word(const char* file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

// The kernel takes these files in one write only.
Result<void> write_once(const std::string& file, std::string_view text) {
  const link::UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return std::unexpected(refused_namespace(errno));
  return {};
}

// Each range of users that this process sees, mapped to itself.
std::string same_users(const char* map_file) {
  std::ifstream lines(map_file);
  std::string text;
  unsigned long inside = 0, outside = 0, count = 0;
  while (lines >> inside >> outside >> count)
    text += std::to_string(inside) + " " + std::to_string(inside) + " " + std::to_string(count) + "\n";
  return text;
}

std::string one(unsigned long id) { return std::to_string(id) + " " + std::to_string(id) + " 1\n"; }

}  // namespace

Error refused_namespace(int error) {
  std::string what = "this machine permits no user namespaces to you (";
  what += std::strerror(error);
  what += "), which the hosts of a network are made of; ";
  if (first_word("/proc/sys/user/max_user_namespaces") == "0")
    what += "permit them: sysctl user.max_user_namespaces=10000";
  else if (first_word("/proc/sys/kernel/unprivileged_userns_clone") == "0")
    what += "permit them: sysctl kernel.unprivileged_userns_clone=1";
  else if (first_word("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1")
    what += "permit them: sysctl kernel.apparmor_restrict_unprivileged_userns=0";
  else if (error == ENOSPC || error == EUSERS)
    what += "there are too many: end others, or raise the limit, sysctl user.max_user_namespaces";
  else
    what +=
        "in a container start it with --security-opt seccomp=unconfined --security-opt "
        "systempaths=unconfined, "
        "or with --privileged; in a chroot leave that first";
  return {Cause::namespaces_refused, std::move(what)};
}

Result<void> unshare_users() {
  if (::unshare(CLONE_NEWUSER) == 0) return {};
  return std::unexpected(refused_namespace(errno));
}

Result<void> map_users(pid_t pid) {
  const std::string of = "/proc/" + std::to_string(pid);
  if (::geteuid() == 0) {
    if (const auto mapped = write_once(of + "/gid_map", same_users("/proc/self/gid_map")); mapped)
      return write_once(of + "/uid_map", same_users("/proc/self/uid_map"));
    // Root without CAP_SETUID, as in some containers, is a user like others.
  }
  // Who may map itself only must give up setgroups(2) first: it could leave a group that is denied something.
  if (const auto denied = write_once(of + "/setgroups", "deny"); !denied) return denied;
  if (const auto mapped = write_once(of + "/gid_map", one(::getegid())); !mapped) return mapped;
  return write_once(of + "/uid_map", one(::geteuid()));
}

}  // namespace weir::hosts

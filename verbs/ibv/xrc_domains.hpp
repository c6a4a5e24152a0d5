// Which XRC domains this process has open, and whether another process has one open (ibv_open_xrcd(3)).
//
// A domain is either named by a file and tied to its inode, or private. Each process that has a named domain
// open holds a shared record lock (fcntl(2)) on one byte of a file in the runtime directory. The kernel drops
// the locks of a killed process, so a domain ends with its last process and needs no clean-up.
//
// Threading: all functions may be called from any thread. A forked child starts with no domain open.
#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "link/unique_fd.hpp"

namespace weir::verbs {

class XrcDomains {
 public:
  static XrcDomains& of_this_process();

  // The identity of the domain, equal in all processes and never 0; nullopt with errno. `directory` is where
  // the processes of this user meet.
  std::optional<std::uint64_t> open(const ibv_xrcd_init_attr& init, const std::string& directory);
  void close(std::uint64_t identity);

 private:
  std::optional<std::uint64_t> open_named(std::uint64_t identity, int oflags, const std::string& directory);
  void forget_parents();

  std::mutex mutex_;
  pid_t owner_ = 0;
  std::map<std::uint64_t, int> open_;  // identity to number of handles
  link::UniqueFd holders_;
};

}  // namespace weir::verbs

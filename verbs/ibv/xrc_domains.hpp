// Which XRC domains this process has open, and whether another process has one open (ibv_open_xrcd(3)).
//
// A domain is named by a file, whose inode it belongs to, or is nobody else's. Of a named one every process
// that has it open holds a byte of a file in the runtime directory under a shared record lock (fcntl(2)): so
// the kernel forgets a killed process, and a domain ends with its last process without anybody's doing.
//
// Threading: all functions from any thread. A forked child has none open.
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

  // The identity of the domain, equal in all processes and never 0; nullopt with errno. `directory`: where
  // the processes of this user meet.
  std::optional<std::uint64_t> open(const ibv_xrcd_init_attr& init, const std::string& directory);
  void close(std::uint64_t identity);

 private:
  std::optional<std::uint64_t> open_named(std::uint64_t identity, int oflags, const std::string& directory);
  void forget_parents();

  std::mutex mutex_;
  pid_t owner_ = 0;
  std::map<std::uint64_t, int> open_;  // by identity: handles
  link::UniqueFd holders_;
};

}  // namespace weir::verbs

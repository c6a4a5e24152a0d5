// Which programs run in the hosts, as /proc shows them to the caller.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "twin/hosts/requests.hpp"

namespace weir::hosts {

struct HostProgram {
  std::size_t host = 0;  // index in the listing
  pid_t pid = 0;         // as the caller sees it
  std::string command;   // with its arguments
};

// By host, then by number. Programs of other users are left out: the caller cannot look at them.
std::vector<HostProgram> programs_in(const Listing& listing);

}  // namespace weir::hosts

// A child process in a host.
#pragma once

#include <sys/types.h>

#include <string>

#include "twin/hosts/host_error.hpp"
#include "twin/hosts/namespaces.hpp"

namespace weir::hosts {

// Forks. Returns 0 in the child, which is in the host, in the same working directory, with the same user and
// environment; and its process number, as the caller sees it, in the caller. The caller stays where it is,
// and reaps the child. The child is killed (SIGKILL) when the calling thread ends. It may change its host's
// network and mounts and enter hosts of the same network (ambient capabilities of the user namespace), and so
// may the program that it becomes. It should exec soon: it has one thread, whose number the C library does
// not know.
//
// The errors are those of the child too; a child that cannot enter ends.
Result<pid_t> fork_into(const HostNamespaces& host);

// Sets WEIR_FABRIC, WEIR_FABRIC_HOST and HOSTNAME. For the child, before it execs.
void set_host_variables(const std::string& folder, const std::string& host);

}  // namespace weir::hosts

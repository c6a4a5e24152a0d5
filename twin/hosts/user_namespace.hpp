// A user namespace makes an ordinary user the administrator of the networks and mounts made in it, and of
// nothing else. Users keep their numbers: a program in a host runs as the user who started it.
#pragma once

#include <sys/types.h>

#include <string>

#include "twin/hosts/host_error.hpp"

namespace weir::hosts {

// Moves this process, which must have one thread, into a new user namespace. Another process then calls
// map_users() for it.
Result<void> unshare_users();

// Maps the caller's users into the user namespace of the process `pid`: itself, and all it may map if it is
// root. The caller must be in the namespace that `pid` left.
Result<void> map_users(pid_t pid);

// The error for a refused user namespace: what refuses it on this machine, as far as that can be seen, and
// what permits it.
Error refused_namespace(int error);

}  // namespace weir::hosts

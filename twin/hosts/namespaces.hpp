// The namespaces that are a host, as descriptors: it exists as long as a process or a descriptor is in it.
#pragma once

#include <array>
#include <cstddef>

#include "link/unique_fd.hpp"
#include "twin/hosts/host_error.hpp"

namespace weir::hosts {

enum Namespace { users, processes, network, mounts, hostname, ipc };
inline constexpr std::size_t namespaces = 6;
using HostNamespaces = std::array<link::UniqueFd, namespaces>;

// The namespace of this process, or of the children it will have (`processes`).
Result<link::UniqueFd> own(Namespace which);
// CLONE_NEWNET and so on.
int flag_of(Namespace which);

}  // namespace weir::hosts

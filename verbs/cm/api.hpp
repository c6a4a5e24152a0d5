// What the files of the C interface share: errors as C sees them, and waiting for an operation's event.
#pragma once

#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstddef>
#include <span>

#include "verbs/cm/agent.hpp"

namespace weir::cm {

// 0 stays 0; an errno is set and becomes -1.
inline int as_c(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// An identifier exists only if the agent does.
inline Agent& agent() { return *Agent::instance(); }

// After an operation was begun: a synchronous identifier waits for its event, which stays in id->event until
// the next. -1 and errno when the event says that it failed.
int complete(Id& id);

inline std::span<const std::byte> private_bytes(const void* data, std::size_t size) {
  return {static_cast<const std::byte*>(data), data == nullptr ? 0 : size};
}

}  // namespace weir::cm

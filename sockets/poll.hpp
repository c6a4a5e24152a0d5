// poll() over descriptors that may include engaged connections and epoll sets. select() and
// its kin are built on it.
#pragma once

#include <poll.h>

#include <span>

#include "sockets/calls/interruption.hpp"

namespace weir::sockets {

bool concerns_us(std::span<const pollfd> fds);  // otherwise call the kernel's own poll
// As ppoll(): returns how many descriptors are ready, or -1 with errno.
int wait_for_any(std::span<pollfd> fds, Timeout timeout, const sigset_t* mask);

}  // namespace weir::sockets

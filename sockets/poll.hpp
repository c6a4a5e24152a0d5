// poll() over descriptors of which some may be engaged connections or epoll sets. select() and its kin are
// made of it.
#pragma once

#include <poll.h>

#include <span>

#include "sockets/interruption.hpp"

namespace weir::sockets {

bool concerns_us(std::span<const pollfd> fds);  // else the kernel's own call does
// As ppoll(): how many have something, or -1 and errno.
int wait_for_any(std::span<pollfd> fds, Timeout timeout, const sigset_t* mask);

}  // namespace weir::sockets

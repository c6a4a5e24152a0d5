// Whether a client waits at a listening socket: without a free descriptor, accept(2) fails before it looks.
#pragma once

#include <poll.h>

namespace weir::transport {

inline bool client_waits(int listener) {
  pollfd look{.fd = listener, .events = POLLIN, .revents = 0};
  return ::poll(&look, 1, 0) == 1 && (look.revents & POLLIN) != 0;
}

}  // namespace weir::transport

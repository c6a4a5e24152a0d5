// Which connection a descriptor is: its two ends, and where the other one is.
#pragma once

#include <optional>

#include "sockets/layout.hpp"

namespace weir::sockets {

struct Ends {
  Key key;
  bool lower = false;  // ours is the lower one
  bool far = false;    // the other one is on another host, or may be

  const Key::End& own() const { return lower ? key.low : key.high; }
  const Key::End& peer() const { return lower ? key.high : key.low; }
};

// Nothing: it is not connected over TCP, or with itself, or with half of it on the loopback interface.
std::optional<Ends> ends_of(int fd);

}  // namespace weir::sockets

// The identity of a connection, from its descriptor: its two ends, and whether the other end is far.
#pragma once

#include <optional>

#include "sockets/layout.hpp"

namespace weir::sockets {

struct Ends {
  Key key;
  bool lower = false;  // our end is the lower one
  bool far = false;    // the other end is on another host, or may be

  const Key::End& own() const { return lower ? key.low : key.high; }
  const Key::End& peer() const { return lower ? key.high : key.low; }
};

// nullopt: not connected over TCP, connected to itself, or only one of its ends is a loopback address.
std::optional<Ends> ends_of(int fd);

}  // namespace weir::sockets

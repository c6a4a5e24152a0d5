// One connection to a server and the loop that drives it. The programs above know only this file: which
// transport carries the bytes is decided in Reactor::for_transport.
//
// Threading: a reactor and its connections belong to one thread. Events are delivered from turn() (and, for
// other connections of the same reactor, from open(), which waits).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "cli/client/endpoint.hpp"
#include "cli/client/error.hpp"

namespace weir::client {

using Milliseconds = std::chrono::milliseconds;

// What happens to a connection. The receiver may write() from inside an event but not destroy the connection.
class ConnectionEvents {
 public:
  virtual void received(std::span<const std::byte> bytes) = 0;  // valid during the call only
  virtual void writable() = 0;                                  // after write() took less than it was given
  virtual void ended(const Error& why) = 0;                     // once; nothing follows it

 protected:
  ~ConnectionEvents() = default;
};

class Connection {
 public:
  virtual ~Connection() = default;  // closes; no event follows

  // Takes as many bytes as it can without waiting and says how many; copies what it keeps, unless there is an
  // `owner` of bytes that nobody changes: that it may hold instead. Less than all: writable() will be called.
  // After the connection has ended it takes nothing.
  virtual std::size_t write(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) = 0;
};

class Reactor {
 public:
  virtual ~Reactor() = default;  // after its connections

  static Result<std::unique_ptr<Reactor>> for_transport(Transport);

  // Connects, with the TLS handshake where there is one; waits at most `limit`. `events` outlives the
  // connection.
  virtual Result<std::unique_ptr<Connection>> open(const Endpoint&, ConnectionEvents& events,
                                                   Milliseconds limit) = 0;

  // Waits at most `limit` for something to happen and delivers what has. Returns early on a signal.
  virtual void turn(std::chrono::nanoseconds limit) = 0;
};

}  // namespace weir::client

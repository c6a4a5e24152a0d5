// One connection to a server and the loop that drives it. The programs use only this file:
// Reactor::for_transport decides which transport carries the bytes.
//
// Threading: a reactor and its connections belong to one thread. turn() delivers events; so does open(),
// which waits, for other connections of the same reactor.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "cli/client/endpoint.hpp"
#include "cli/client/error.hpp"

namespace weir::client {

using Milliseconds = std::chrono::milliseconds;

// The events of a connection. The receiver may write() within an event, but not destroy the connection.
class ConnectionEvents {
 public:
  virtual void received(std::span<const std::byte> bytes) = 0;  // valid during the call only
  virtual void writable() = 0;                                  // after write() did not take everything
  virtual void ended(const Error& why) = 0;                     // once; nothing follows it

 protected:
  ~ConnectionEvents() = default;
};

class Connection {
 public:
  virtual ~Connection() = default;  // closes; no event follows

  // Takes as many bytes as it can without waiting, and returns the number. It copies what it keeps, unless
  // the bytes have an `owner` and never change: then it may hold that. After a partial write, writable() will
  // be called. A connection that has ended takes nothing.
  virtual std::size_t write(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) = 0;
};

class Reactor {
 public:
  virtual ~Reactor() = default;  // destroy its connections first

  static Result<std::unique_ptr<Reactor>> for_transport(Transport);

  // Connects, including the TLS handshake if needed, within `limit`. `events` must
  // outlive the connection.
  virtual Result<std::unique_ptr<Connection>> open(const Endpoint&, ConnectionEvents& events,
                                                   Milliseconds limit) = 0;

  // Waits up to `limit` for events and delivers them. Returns early on a signal.
  virtual void turn(std::chrono::nanoseconds limit) = 0;
};

}  // namespace weir::client

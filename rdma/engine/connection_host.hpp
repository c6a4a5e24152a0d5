// What a connection asks of its host: the Engine (engine.hpp), as a connection sees it.
//
// Threading: the engine's thread.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>

#include "rdma/device/device.hpp"
#include "rdma/engine/access_errors.hpp"
#include "rdma/verbs/cm.hpp"

namespace weir::rdma {

class ConnectionLife;

using Clock = std::chrono::steady_clock;

class ConnectionHost {
 public:
  virtual asio::io_context& io() = 0;
  Clock::time_point now() const { return Clock::now(); }
  virtual Result<Device*> device_for(ibv_context* context) = 0;
  virtual Result<CmId> make_id() = 0;
  // Polls soon, and for a while: something was posted that will complete or be answered.
  virtual void kick() = 0;
  // Calls the connection's notify() at the end of the round.
  virtual void mark_dirty(ConnectionLife& connection) = 0;
  // Tells the connection when its completion queue was seen empty.
  virtual void await_empty(ConnectionLife& connection) = 0;
  // The connection ended while its peer was inside an operation: call try_leave() now and then.
  virtual void await_leave(ConnectionLife& connection) = 0;
  // Forgets the connection at the end of the current round.
  virtual void discard(ConnectionLife& connection) = 0;
  virtual AccessErrors& access_errors() = 0;
  // The connection's peer was refused access to our memory.
  virtual void on_trespass(const Endpoint& local, const Endpoint& remote) = 0;
  // The connection has released the device and no longer keeps run() from returning.
  virtual void connection_ended() = 0;

 protected:
  ~ConnectionHost() = default;
};

}  // namespace weir::rdma

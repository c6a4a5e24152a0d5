// A listening identifier and the connections that came in through it and nobody took yet.
//
// Each request is accepted at once; what is being established and what waits to be taken are together bounded
// by the backlog, beyond it requests are rejected. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "rdma/cm.hpp"
#include "rdma/connection_life.hpp"
#include "rdma/io_op.hpp"

namespace weir::rdma {

class Engine;

// Gets the connection, which it then owns as a Stream or Channel does; null with an error. It is of the kind
// that the listener makes.
using AcceptOpPtr = IoOpPtr<std::error_code, ConnectionLife*>;

class Listener final : public CmOwner {
 public:
  // Makes the server's end of a connection, in the engine.
  using Make = std::function<Result<ConnectionLife*>()>;

  // Bound to `address` and listening.
  static Result<std::unique_ptr<Listener>> open(Engine& engine, const Endpoint& address, Make make,
                                                std::uint32_t backlog);
  Listener(Engine& engine, CmId id, Make make, std::uint32_t backlog);
  ~Listener() override;  // closes; connections that nobody took are abandoned

  Result<void> start() { return id_.listen(static_cast<int>(backlog_)); }
  void wait_accept(AcceptOpPtr op);
  void cancel();  // waiting accepts end with operation_aborted
  Endpoint local() const { return id_.local(); }
  std::uint64_t rejected() const { return rejected_; }

  void on_cm_event(const CmEvent&) override;
  // From its connections, once each: established, or ended before that.
  void ready(ConnectionLife& connection);
  void failed(ConnectionLife& connection);

 private:
  void on_request(CmId id, const CmEvent& request);

  Engine& engine_;
  CmId id_;
  Make make_;
  std::uint32_t backlog_;
  std::vector<ConnectionLife*> accepting_;
  std::deque<ConnectionLife*> ready_;
  std::deque<AcceptOpPtr> waiting_;
  std::uint64_t rejected_ = 0;
};

}  // namespace weir::rdma

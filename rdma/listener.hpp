// A listening identifier and the connections that came in through it and nobody took yet.
//
// Each request is accepted at once; what is being established and what waits to be taken are together bounded
// by the backlog, beyond it requests are rejected. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "rdma/cm.hpp"
#include "rdma/connection.hpp"
#include "rdma/io_op.hpp"
#include "rdma/settings.hpp"

namespace weir::rdma {

class Engine;

// Gets the connection, which it then owns as a Stream does; null with an error.
using AcceptOpPtr = IoOpPtr<std::error_code, Connection*>;

class Listener final : public CmOwner {
 public:
  Listener(Engine& engine, CmId id, const StreamSettings& settings, std::uint32_t backlog);
  ~Listener() override;  // closes; connections that nobody took are abandoned

  Result<void> start() { return id_.listen(static_cast<int>(backlog_)); }
  void wait_accept(AcceptOpPtr op);
  void cancel();  // waiting accepts end with operation_aborted
  Endpoint local() const { return id_.local(); }
  std::uint64_t rejected() const { return rejected_; }

  void on_cm_event(const CmEvent&) override;
  // From its connections, once each: established, or ended before that.
  void ready(Connection& connection);
  void failed(Connection& connection);

 private:
  void on_request(CmId id);

  Engine& engine_;
  CmId id_;
  StreamSettings settings_;
  std::uint32_t backlog_;
  std::vector<Connection*> accepting_;
  std::deque<Connection*> ready_;
  std::deque<AcceptOpPtr> waiting_;
  std::uint64_t rejected_ = 0;
};

}  // namespace weir::rdma

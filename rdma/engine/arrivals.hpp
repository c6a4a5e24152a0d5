// Connections that came to one engine and were not yet accepted by the application, whichever listener they
// came through.
//
// Each request is accepted at once; the backlog bounds connections being established and connections waiting
// to be taken together. Beyond it, a request takes the place of a connection that its peer has left half
// open: of an address that has more of them than the request's, or one that is a second old (waiting/shares).
// Otherwise it is rejected. A half-open connection ends after ten seconds anyway.
// Threading: the engine's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "rdma/engine/connection_life.hpp"
#include "rdma/engine/io_op.hpp"
#include "rdma/engine/trespass.hpp"
#include "rdma/verbs/cm.hpp"
#include "waiting/shares.hpp"

namespace weir::rdma {

class Engine;

// Gets the connection, which it then owns as a Stream or Channel does, or null with an error. The connection
// is of the kind that these arrivals make.
using AcceptOpPtr = IoOpPtr<std::error_code, ConnectionLife*>;

class Arrivals final : public AcceptedEvents {
 public:
  // Makes the server's end of a connection, in the engine.
  using Make = std::function<Result<ConnectionLife*>()>;

  Arrivals(Engine& engine, Make make, std::uint32_t backlog);
  ~Arrivals();  // abandons connections that were not taken
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  // Returns the operation's number, for cancel().
  std::uint64_t wait_accept(AcceptOpPtr op);
  // Ends waiting accepts with operation_aborted: the one with this number, if it still waits, or all of them.
  void cancel(std::uint64_t number);
  void cancel();
  // Rejects requests from now on. Connections being established are still delivered; once none are left,
  // waiting and later accepts end with operation_aborted.
  void finish();
  std::uint32_t backlog() const { return backlog_; }
  std::uint64_t rejected() const { return rejected_; }

  // A CONNECT_REQUEST and its identifier, whose events are delivered to this engine.
  void on_request(CmId id, const CmEvent& request);
  // Called by its connections, once each: established, or ended before that.
  void ready(ConnectionLife& connection) override;
  void failed(ConnectionLife& connection) override;

 private:
  struct Waiting {
    std::uint64_t number;
    AcceptOpPtr op;
  };
  using HalfOpen = waiting::Shares<Trespasses::Source, ConnectionLife*>;
  struct Accepting {
    ConnectionLife* connection;
    HalfOpen::Number place;
  };
  void abort(AcceptOpPtr op);
  void end_if_finished();
  void drop_half_open_for(const Trespasses::Source& newcomer);
  void no_longer_half_open(const ConnectionLife& connection);

  Engine& engine_;
  Make make_;
  const std::uint32_t backlog_;
  std::vector<Accepting> accepting_;
  HalfOpen half_open_;  // the same, by source
  std::deque<ConnectionLife*> ready_;
  std::deque<Waiting> waiting_;  // by number
  std::uint64_t next_number_ = 0;
  std::uint64_t rejected_ = 0;
  bool finishing_ = false;
};

}  // namespace weir::rdma

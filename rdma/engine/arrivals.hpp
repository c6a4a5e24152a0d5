// The connections that came to one engine and nobody took yet, whichever listener they came in through.
//
// Each request is accepted at once; what is being established and what waits to be taken are together bounded
// by the backlog. Beyond it a request takes the seat of the oldest peer that has left its connection half
// open for a second, and else is rejected; after ten seconds such a connection ends anyway. Threading: the
// engine's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "rdma/engine/connection_life.hpp"
#include "rdma/engine/io_op.hpp"
#include "rdma/verbs/cm.hpp"

namespace weir::rdma {

class Engine;

// Gets the connection, which it then owns as a Stream or Channel does; null with an error. It is of the kind
// that the arrivals are.
using AcceptOpPtr = IoOpPtr<std::error_code, ConnectionLife*>;

class Arrivals final : public AcceptedEvents {
 public:
  // Makes the server's end of a connection, in the engine.
  using Make = std::function<Result<ConnectionLife*>()>;

  Arrivals(Engine& engine, Make make, std::uint32_t backlog);
  ~Arrivals();  // connections that nobody took are abandoned
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  // Its number, for cancel().
  std::uint64_t wait_accept(AcceptOpPtr op);
  // Waiting accepts end with operation_aborted: that one, if it still waits, or all.
  void cancel(std::uint64_t number);
  void cancel();
  // Requests are rejected from now on. What is being established still comes; accepts that wait when nothing
  // is any more end with operation_aborted, and so do later ones.
  void finish();
  std::uint32_t backlog() const { return backlog_; }
  std::uint64_t rejected() const { return rejected_; }

  // A CONNECT_REQUEST and its identifier, whose events come to this engine.
  void on_request(CmId id, const CmEvent& request);
  // From its connections, once each: established, or ended before that.
  void ready(ConnectionLife& connection) override;
  void failed(ConnectionLife& connection) override;

 private:
  struct Waiting {
    std::uint64_t number;
    AcceptOpPtr op;
  };
  void abort(AcceptOpPtr op);
  void end_if_finished();
  void drop_oldest_half_open();

  Engine& engine_;
  Make make_;
  const std::uint32_t backlog_;
  std::vector<ConnectionLife*> accepting_;
  std::deque<ConnectionLife*> ready_;
  std::deque<Waiting> waiting_;  // by number
  std::uint64_t next_number_ = 0;
  std::uint64_t rejected_ = 0;
  bool finishing_ = false;
};

}  // namespace weir::rdma

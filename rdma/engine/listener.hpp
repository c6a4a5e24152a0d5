// A listening identifier, and the engines that take turns receiving its connections: its own, and those with
// a seat.
//
// Threading: the engine's thread; a Seat's `arrivals` belong to the thread of the engine that sits there.
// Until the listener is gone, that engine must live, or give up its seat in its own thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rdma/engine/arrivals.hpp"

namespace weir::rdma {

// The holder of the only reference gives up the seat by releasing it.
struct Seat {
  Engine& engine;
  std::weak_ptr<Arrivals> arrivals;
};

class Listener final : public CmOwner {
 public:
  // Bound to `address` and listening.
  static Result<std::unique_ptr<Listener>> open(Engine& engine, const Endpoint& address,
                                                std::shared_ptr<Arrivals> arrivals);
  Listener(CmId id, std::shared_ptr<Arrivals> arrivals);
  ~Listener() override;  // closes

  Result<void> start() { return id_.listen(static_cast<int>(arrivals_->backlog())); }
  Endpoint local() const { return id_.local(); }
  // Requests that come before `arrivals` is set are rejected. If it is set in the engine's thread by
  // something posted there after this call, it is never too late.
  std::shared_ptr<Seat> seat_for(Engine& engine);

  void on_cm_event(const CmEvent&) override;

 private:
  std::shared_ptr<Seat> whose_turn();
  void hand_over(CmId id, const CmEvent& request, std::shared_ptr<Seat> seat);

  CmId id_;
  const std::shared_ptr<Arrivals> arrivals_;
  std::vector<std::weak_ptr<Seat>> seats_;
  std::size_t turn_ = 0;  // 0: our own
};

}  // namespace weir::rdma

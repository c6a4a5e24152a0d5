#include "rdma/engine/listener.hpp"

#include <asio/post.hpp>
#include <utility>

#include "rdma/engine.hpp"

namespace weir::rdma {

Result<std::unique_ptr<Listener>> Listener::open(Engine& engine, const Endpoint& address,
                                                 std::shared_ptr<Arrivals> arrivals) {
  Result<CmId> id = engine.make_id();
  if (!id) return std::unexpected(id.error());
  if (Result<void> bound = id->bind(address); !bound) return std::unexpected(bound.error());
  auto listener = std::make_unique<Listener>(std::move(*id), std::move(arrivals));
  // The listener must own the identifier before requests can arrive.
  if (Result<void> listening = listener->start(); !listening) return std::unexpected(listening.error());
  return listener;
}

Listener::Listener(CmId id, std::shared_ptr<Arrivals> arrivals)
    : id_(std::move(id)), arrivals_(std::move(arrivals)) {
  id_.set_context(static_cast<CmOwner*>(this));
}

Listener::~Listener() = default;

std::shared_ptr<Seat> Listener::seat_for(Engine& engine) {
  auto seat = std::make_shared<Seat>(Seat{engine, {}});
  seats_.push_back(seat);
  return seat;
}

// Null: it is our own turn.
std::shared_ptr<Seat> Listener::whose_turn() {
  std::erase_if(seats_, [](const std::weak_ptr<Seat>& seat) { return seat.expired(); });
  turn_ = (turn_ + 1) % (seats_.size() + 1);
  return turn_ == 0 ? nullptr : seats_[turn_ - 1].lock();
}

void Listener::on_cm_event(const CmEvent& event) {
  if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  CmId id(event.id);
  // Until a connection owns it, events of the new identifier have no owner.
  id.set_context(nullptr);
  if (auto seat = whose_turn())
    hand_over(std::move(id), event, std::move(seat));
  else
    arrivals_->on_request(std::move(id), event);
}

// The event is acknowledged and the channel is ours, so the identifier can be moved now (rdma_migrate_id(3)).
void Listener::hand_over(CmId id, const CmEvent& request, std::shared_ptr<Seat> seat) {
  if (!seat->engine.adopt(id)) {
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  asio::io_context& there = seat->engine.io();
  asio::post(there, [id = std::move(id), request, seat = std::move(seat)]() mutable {
    if (const auto arrivals = seat->arrivals.lock())
      arrivals->on_request(std::move(id), request);
    else
      rdma_reject(id.get(), nullptr, 0);
  });
}

}  // namespace weir::rdma

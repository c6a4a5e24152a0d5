#include "rdma/engine/arrivals.hpp"

#include <algorithm>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <utility>

#include "rdma/engine.hpp"

namespace weir::rdma {

Arrivals::Arrivals(Engine& engine, Make make, std::uint32_t backlog)
    : engine_(engine), make_(std::move(make)), backlog_(backlog) {
  engine_.listener_opened();
}

Arrivals::~Arrivals() {
  cancel();
  for (const Accepting& each : accepting_) {
    each.connection->forget_events();
    each.connection->abandon();
  }
  for (ConnectionLife* connection : ready_) connection->abandon();
  engine_.listener_closed();
}

void Arrivals::cancel() {
  for (Waiting& each : std::exchange(waiting_, {})) abort(std::move(each.op));
}

void Arrivals::cancel(std::uint64_t number) {
  const auto found = std::ranges::lower_bound(waiting_, number, {}, &Waiting::number);
  if (found == waiting_.end() || found->number != number) return;
  abort(std::move(found->op));
  waiting_.erase(found);
}

void Arrivals::finish() {
  finishing_ = true;
  end_if_finished();
}

void Arrivals::end_if_finished() {
  if (finishing_ && accepting_.empty() && ready_.empty()) cancel();
}

void Arrivals::abort(AcceptOpPtr op) {
  asio::post(engine_.io(), [op = std::move(op)]() mutable {
    op.release()->complete(asio::error::operation_aborted, nullptr);
  });
}

std::uint64_t Arrivals::wait_accept(AcceptOpPtr op) {
  const std::uint64_t number = next_number_++;
  waiting_.push_back({number, std::move(op)});
  if (ready_.empty()) {
    end_if_finished();
    return number;
  }
  // Never complete within the function that started the accept.
  asio::post(engine_.io(), [connection = ready_.front(), waiting = std::move(waiting_.front().op)]() mutable {
    waiting.release()->complete({}, connection);
  });
  ready_.pop_front();
  waiting_.pop_front();
  return number;
}

// If no source has more half open than the newcomer's would have, one leaves once it has had its time, as in
// a TCP stack under a flood.
void Arrivals::drop_half_open_for(const Trespasses::Source& newcomer) {
  constexpr std::chrono::seconds min_time{1};
  const auto* dropped = half_open_.taken_by(newcomer);
  if (dropped == nullptr) {
    dropped = half_open_.first_to_leave();
    if (dropped == nullptr || engine_.now() < dropped->second->accepted_at() + min_time) return;
  }
  dropped->second->end(Errc::unreachable, "the peer did not complete the connection, and others wait");
}

void Arrivals::no_longer_half_open(const ConnectionLife& connection) {
  const auto found = std::ranges::find(accepting_, &connection, &Accepting::connection);
  if (found == accepting_.end()) return;
  half_open_.leave(found->place);
  accepting_.erase(found);
}

void Arrivals::on_request(CmId id, const CmEvent& request) {
  if (engine_.is_shut(id.remote())) {
    ++rejected_;
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  const Trespasses::Source source = Trespasses::source_of(id.remote());
  if (!finishing_ && accepting_.size() + ready_.size() >= backlog_) drop_half_open_for(source);
  if (finishing_ || accepting_.size() + ready_.size() >= backlog_) {
    ++rejected_;
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  Result<ConnectionLife*> connection = make_();
  if (!connection) {
    ++rejected_;
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  if (!(*connection)->start_accept(std::move(id), request, *this)) {
    ++rejected_;
    (*connection)->abandon();
    return;
  }
  accepting_.push_back({*connection, half_open_.enter(source, *connection)});
}

void Arrivals::failed(ConnectionLife& connection) {
  no_longer_half_open(connection);
  end_if_finished();
}

void Arrivals::ready(ConnectionLife& connection) {
  no_longer_half_open(connection);
  if (waiting_.empty()) {
    ready_.push_back(&connection);
    return;
  }
  AcceptOpPtr op = std::move(waiting_.front().op);
  waiting_.pop_front();
  op.release()->complete({}, &connection);  // last: the handler may destroy the acceptor
}

}  // namespace weir::rdma

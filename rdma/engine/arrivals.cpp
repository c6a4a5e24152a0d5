#include "rdma/engine/arrivals.hpp"

#include <algorithm>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <map>
#include <utility>

#include "rdma/engine.hpp"

namespace weir::rdma {

Arrivals::Arrivals(Engine& engine, Make make, std::uint32_t backlog)
    : engine_(engine), make_(std::move(make)), backlog_(backlog) {
  engine_.listener_opened();
}

Arrivals::~Arrivals() {
  cancel();
  for (ConnectionLife* connection : accepting_) {
    connection->forget_events();
    connection->abandon();
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

// If the queue is full, drops the oldest connection of the address that has most half open, as long as the
// newcomer's address has fewer. Otherwise drops the oldest of all, once it has had its time, as a TCP stack
// does under a flood.
void Arrivals::drop_half_open_for(const asio::ip::address& newcomer) {
  constexpr std::chrono::seconds min_time{1};
  if (accepting_.empty()) return;
  std::map<asio::ip::address, std::size_t> half_open;
  for (const ConnectionLife* connection : accepting_) ++half_open[connection->remote().address()];
  const std::size_t newcomers = half_open[newcomer] + 1;
  const auto greediest =
      std::ranges::max_element(half_open, {}, [](const auto& each) { return each.second; });
  auto dropped = accepting_.begin();
  if (greediest->second > newcomers)
    dropped = std::ranges::find(accepting_, greediest->first,
                                [](const ConnectionLife* each) { return each->remote().address(); });
  else if (engine_.now() < accepting_.front()->accepted_at() + min_time)
    return;
  (*dropped)->end(Errc::unreachable, "the peer did not complete the connection, and others wait");
}

void Arrivals::on_request(CmId id, const CmEvent& request) {
  if (engine_.is_shut(id.remote())) {
    ++rejected_;
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  if (!finishing_ && accepting_.size() + ready_.size() >= backlog_) drop_half_open_for(id.remote().address());
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
  accepting_.push_back(*connection);
}

void Arrivals::failed(ConnectionLife& connection) {
  std::erase(accepting_, &connection);
  end_if_finished();
}

void Arrivals::ready(ConnectionLife& connection) {
  std::erase(accepting_, &connection);
  if (waiting_.empty()) {
    ready_.push_back(&connection);
    return;
  }
  AcceptOpPtr op = std::move(waiting_.front().op);
  waiting_.pop_front();
  op.release()->complete({}, &connection);  // last: the handler may destroy the acceptor
}

}  // namespace weir::rdma

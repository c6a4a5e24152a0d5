#include "rdma/listener.hpp"

#include <algorithm>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <utility>

#include "rdma/engine.hpp"

namespace weir::rdma {

Result<std::unique_ptr<Listener>> Listener::open(Engine& engine, const Endpoint& address, Make make,
                                                 std::uint32_t backlog) {
  Result<CmId> id = engine.make_id();
  if (!id) return std::unexpected(id.error());
  if (Result<void> bound = id->bind(address); !bound) return std::unexpected(bound.error());
  auto listener = std::make_unique<Listener>(engine, std::move(*id), std::move(make), backlog);
  // The listener owns the identifier before requests can come.
  if (Result<void> listening = listener->start(); !listening) return std::unexpected(listening.error());
  return listener;
}

Listener::Listener(Engine& engine, CmId id, Make make, std::uint32_t backlog)
    : engine_(engine), id_(std::move(id)), make_(std::move(make)), backlog_(backlog) {
  id_.set_context(static_cast<CmOwner*>(this));
  engine_.listener_opened();
}

Listener::~Listener() {
  cancel();
  for (ConnectionLife* connection : accepting_) {
    connection->forget_listener();
    connection->abandon();
  }
  for (ConnectionLife* connection : ready_) connection->abandon();
  id_ = CmId();
  engine_.listener_closed();
}

void Listener::cancel() {
  for (AcceptOpPtr& op : std::exchange(waiting_, {}))
    asio::post(engine_.io(), [op = std::move(op)]() mutable {
      op.release()->complete(asio::error::operation_aborted, nullptr);
    });
}

void Listener::wait_accept(AcceptOpPtr op) {
  waiting_.push_back(std::move(op));
  if (ready_.empty()) return;
  // Never from within the function that started the accept.
  asio::post(engine_.io(), [connection = ready_.front(), waiting = std::move(waiting_.front())]() mutable {
    waiting.release()->complete({}, connection);
  });
  ready_.pop_front();
  waiting_.pop_front();
}

void Listener::on_cm_event(const CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) on_request(CmId(event.id), event);
}

void Listener::on_request(CmId id, const CmEvent& request) {
  // Until a connection owns it, events of the new identifier are nobody's.
  id.set_context(nullptr);
  if (accepting_.size() + ready_.size() >= backlog_) {
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

void Listener::failed(ConnectionLife& connection) { std::erase(accepting_, &connection); }

void Listener::ready(ConnectionLife& connection) {
  std::erase(accepting_, &connection);
  if (waiting_.empty()) {
    ready_.push_back(&connection);
    return;
  }
  AcceptOpPtr op = std::move(waiting_.front());
  waiting_.pop_front();
  op.release()->complete({}, &connection);  // last: the handler may destroy the listener
}

}  // namespace weir::rdma

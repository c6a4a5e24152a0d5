#include "rdma/engine/connection_life.hpp"

#include <algorithm>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <cerrno>
#include <string>
#include <utility>

#include "rdma/verbs/refusals.hpp"
#include "rdma/verbs/verbs_shim.hpp"

namespace weir::rdma {
ConnectionLife::ConnectionLife(ConnectionHost& engine, std::uint64_t tag, Side side,
                               const LifeSettings& settings)
    : engine_(engine), tag_(tag), side_(side), life_(settings) {}

// --- setting up

void ConnectionLife::start_connect(const Endpoint& peer, ConnectOpPtr op) {
  connect_op_ = std::move(op);
  remote_ = peer;
  state_ = State::resolving;
  Result<CmId> id = engine_.make_id();
  if (!id) return end(id.error().code, std::move(id.error().what));
  id_ = std::move(*id);
  id_.set_context(static_cast<CmOwner*>(this));
  id_.set_ack_timeout(life_.ack_timeout);
  Endpoint copy = peer;
  const auto timeout_ms = static_cast<int>(life_.resolve_timeout.count());
  if (rdma_resolve_addr(id_.get(), nullptr, copy.data(), timeout_ms) != 0)
    end(Errc::address_unresolved,
        "cannot resolve " + text(peer) + " over RDMA: " + std::generic_category().message(errno));
}

Result<void> ConnectionLife::start_accept(CmId id, const CmEvent& request, AcceptedEvents& events) {
  id_ = std::move(id);
  id_.set_context(static_cast<CmOwner*>(this));
  id_.set_ack_timeout(life_.ack_timeout);
  state_ = State::accepting;
  accepted_at_ = engine_.now();
  Result<void> prepared = greeted(request.private_bytes());
  if (prepared) prepared = take_device();
  if (!prepared) {
    rdma_reject(id_.get(), nullptr, 0);
  } else if (rdma_conn_param answer = parameters(&request); rdma_accept(id_.get(), &answer) != 0) {
    prepared = fail_os(Errc::device_error, "cannot accept an RDMA connection", errno);
  }
  // rdma_accept() has made the queue pair ready, and the peer has sent nothing yet.
  if (const auto wait = rnr_wait(); prepared && wait) id_.set_rnr_wait(*wait);
  if (prepared)
    accepted_events_ = &events;
  else
    end(prepared.error().code, prepared.error().what);
  return prepared;
}

Result<void> ConnectionLife::take_device() {
  Result<Device*> device = engine_.device_for(id_->verbs);
  if (!device) return std::unexpected(device.error());
  device_ = *device;
  return prepare();
}

// Devices do not tell their inline limit; they refuse a larger request.
Result<void> ConnectionLife::create_queue_pair(QueuePairShape shape) {
  for (std::uint32_t inline_bytes = shape.inline_bytes;; inline_bytes /= 2) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = shape.send_cq;
    attributes.recv_cq = shape.receive_cq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = shape.send_depth;
    attributes.srq = shape.srq;
    attributes.cap.max_recv_wr = shape.srq != nullptr ? 0 : shape.receive_depth;
    attributes.cap.max_send_sge = shape.max_pieces;
    attributes.cap.max_recv_sge = shape.srq != nullptr ? 0 : 1;
    attributes.cap.max_inline_data = inline_bytes;
    if (rdma_create_qp(id_.get(), device_->pd().get(), &attributes) == 0) {
      engine_.access_errors().watch(id_->qp);
      inline_bytes_ = std::min<std::uint32_t>(attributes.cap.max_inline_data, shape.inline_bytes);
      return {};
    }
    const int why = errno;
    if (inline_bytes == 0)
      return fail_os(Errc::device_error,
                     "cannot create a queue pair of depth " + std::to_string(shape.send_depth) + "/" +
                         std::to_string(shape.receive_depth) + " (the device may want smaller depths)",
                     why);
  }
}

// The connecting end sets the retry count of both ends (REQ's Retry Count, IBA 12.6.5). Soft-RoCE
// in the kernel takes 7 there as "for ever", too, so six is the most that detects a vanished peer
// everywhere. READs: as many as we can and, in the answer to a `request`, no more than the peer
// can (IBA 12.7.29, 12.7.30).
rdma_conn_param ConnectionLife::parameters(const CmEvent* request) const {
  const auto most = [&](int device_limit, int peer_limit) {
    const int wanted = std::min<int>(read_depth(), request != nullptr ? peer_limit : read_depth());
    return static_cast<std::uint8_t>(std::clamp(wanted, 0, std::max(device_limit, 0)));
  };
  rdma_conn_param parameters{};
  parameters.responder_resources =
      most(device_->limits().max_qp_rd_atom, request != nullptr ? request->responder_resources : 0);
  parameters.initiator_depth =
      most(device_->limits().max_qp_init_rd_atom, request != nullptr ? request->initiator_depth : 0);
  parameters.retry_count = 6;
  parameters.rnr_retry_count = rnr_retries();
  const std::span<const std::byte> ours = greeting();
  parameters.private_data = ours.data();
  parameters.private_data_len = static_cast<std::uint8_t>(ours.size());
  return parameters;
}

Result<void> ConnectionLife::connect_now() {
  state_ = State::connecting;
  if (Result<void> taken = take_device(); !taken) return taken;
  rdma_conn_param request = parameters(nullptr);
  if (rdma_connect(id_.get(), &request) == 0) return {};
  return fail_os(Errc::unreachable, "cannot connect to " + text(remote_), errno);
}

void ConnectionLife::established(const CmEvent& event) {
  if (state_ != State::accepting && state_ != State::connecting) return;
  local_ = id_.local();
  remote_ = id_.remote();
  if (side_ == Side::client)
    if (Result<void> understood = greeted(event.private_bytes()); !understood)
      return end(understood.error().code, std::move(understood.error().what));
  state_ = State::established;
  if (const auto wait = rnr_wait(); side_ == Side::client && wait) id_.set_rnr_wait(*wait);
  on_established();
  mark_dirty();
  if (AcceptedEvents* events = std::exchange(accepted_events_, nullptr); events != nullptr)
    events->ready(*this);
}

// The event comes as it would with the packet. An error means that it was on its way, or that all is over.
void ConnectionLife::heard(const ibv_wc& completion) {
  if (state_ != State::accepting || completion.status != IBV_WC_SUCCESS || std::exchange(heard_, true))
    return;
  (void)rdma_notify(id_.get(), IBV_EVENT_COMM_EST);
}

void ConnectionLife::on_cm_event(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(id_.get(), static_cast<int>(life_.resolve_timeout.count())) != 0)
        end(Errc::unreachable,
            "no route to " + text(remote_) + ": " + std::generic_category().message(errno));
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (Result<void> done = connect_now(); !done) end(done.error().code, done.error().what);
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      return established(event);
    case RDMA_CM_EVENT_ADDR_ERROR:
      return end(Errc::address_unresolved, why_not_resolved(text(remote_), event.status));
    case RDMA_CM_EVENT_REJECTED:
      return end(Errc::refused, why_refused(text(remote_), event.status));
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return end(Errc::unreachable, text(remote_) + " does not answer over RDMA (" +
                                        rdma_event_str(event.type) + ", " + std::to_string(event.status) +
                                        "); its program may be stopped, or the network may lose its packets");
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
    case RDMA_CM_EVENT_ADDR_CHANGE:
      return peer_left(asio::error::eof, "the peer closed the connection");
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return end(Errc::device_error, "the RDMA device was removed");
    default:
      return;
  }
}

// --- ending

void ConnectionLife::on_failed(const ibv_wc& completion) {
  // Before all others: an access that was refused also flushes what was posted.
  if (!cause_.code && engine_.access_errors().noted(id_->qp))
    return peer_left(Errc::trespass, "the peer tried to reach memory that it was given no right to");
  const std::string status = ibv_wc_status_str(completion.status);
  if (Error known = explain(completion); known.code) return peer_left(known.code, std::move(known.what));
  switch (completion.status) {
    case IBV_WC_WR_FLUSH_ERR:  // the queue pair failed or the peer hung up; the event or an earlier error
                               // says why
      return peer_left(asio::error::eof, "the peer closed the connection");
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return peer_left(Errc::connection_lost, why_lost(completion.status, status));
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return peer_left(Errc::remote_access,
                       "the peer refused our access to the memory it announced (" + status + ")");
    default:
      break;
  }
  peer_left(Errc::device_error, "the device failed an operation (" + status + ")");
}

// The connection is over, but messages that the peer sent earlier may still be in the completion queue.
void ConnectionLife::peer_left(std::error_code cause, std::string what) {
  if (state_ == State::ended) return;
  // A flushed request only shows that the connection ended; prefer any error that names a reason.
  if (!cause_.code || cause_.code == asio::error::eof) cause_ = {cause, std::move(what)};
  if (state_ != State::established) {
    if (state_ == State::accepting || state_ == State::connecting)
      cause_ = {Errc::refused, text(remote_) + " ended the connection before it was established"};
    return finish();
  }
  if (awaited_ == nullptr) awaited_ = queue_;
  engine_.await_empty(*this);
}

void ConnectionLife::on_queue_empty() {
  if (state_ == State::ended) return;
  if (awaited_ == queue_of_sends()) return finish();
  awaited_ = queue_of_sends();
  engine_.await_empty(*this);
}

void ConnectionLife::end(std::error_code cause, std::string what) {
  if (state_ == State::ended) return;
  cause_ = {cause, std::move(what)};
  finish();
}

void ConnectionLife::finish() {
  const bool was_up = state_ == State::established || state_ == State::closing;
  state_ = State::ended;
  if (was_up) rdma_disconnect(id_.get());
  before_queue_pair_goes();
  // rdma_disconnect() has moved the queue pair to ERR, so a peer that has left cannot come back.
  leaving_ = id_ && peer_inside(id_->qp);
  if (leaving_)
    engine_.await_leave(*this);
  else
    let_go();
  if (AcceptedEvents* events = std::exchange(accepted_events_, nullptr); events != nullptr) {
    events->failed(*this);
    abandoned_ = true;  // it never had a stream
  }
  if (abandoned_)
    discard();
  else
    mark_dirty();
}

void ConnectionLife::let_go() {
  if (id_ && id_->qp != nullptr) {
    if (engine_.access_errors().noted(id_->qp)) engine_.on_trespass(id_.local(), id_.remote());
    engine_.access_errors().forget(id_->qp);
  }
  revoke_rights();
  id_ = CmId();
  release_resources();
  queue_ = nullptr;
  engine_.connection_ended();
}

bool ConnectionLife::try_leave() {
  if (peer_inside(id_->qp)) return false;
  leaving_ = false;
  let_go();
  if (abandoned_) discard();
  return true;
}

// Nobody will read the rest, but a peer that is inside may still write there.
void ConnectionLife::discard() {
  if (leaving_) return;
  release_unread();
  engine_.discard(*this);
}

void ConnectionLife::abandon() {
  abandoned_ = true;
  cancel_connect();
  on_abandoned();
  if (state_ == State::ended || state_ == State::idle) {
    if (state_ == State::idle) engine_.connection_ended();
    state_ = State::ended;
    return discard();
  }
  if (state_ != State::established) return end(Errc::closed, "closed before it was connected");
  state_ = State::closing;
  linger_until_ = engine_.now() + life_.linger;
  try_hang_up();
}

// Disconnecting flushes requests in flight, so wait until the last one is known to be done.
void ConnectionLife::try_hang_up() {
  if (state_ == State::closing && drained()) finish();
}

void ConnectionLife::on_tick(Clock::time_point now) {
  if (state_ == State::closing && now >= linger_until_) end(Errc::closed, "closed");
  if (state_ == State::accepting && now >= accepted_at_ + longest_accept)
    end(Errc::unreachable, text(id_.remote()) + " did not complete the connection that it asked for");
}

// --- notifying

void ConnectionLife::mark_dirty() {
  if (std::exchange(dirty_, true)) return;
  engine_.mark_dirty(*this);
}

void ConnectionLife::notify_connector() {
  if (connect_op_ && (state_ == State::established || ended()))
    std::exchange(connect_op_, nullptr).release()->complete(ended() ? cause_.code : std::error_code());
}

void ConnectionLife::cancel_connect() {
  if (!connect_op_) return;
  asio::post(engine_.io(), [op = std::exchange(connect_op_, nullptr)]() mutable {
    op.release()->complete(asio::error::operation_aborted);
  });
}

}  // namespace weir::rdma

// How a connection comes to be and how it ends.
#include <algorithm>
#include <asio/error.hpp>
#include <cerrno>
#include <sstream>
#include <string>
#include <utility>

#include "rdma/connection.hpp"
#include "rdma/engine.hpp"
#include "rdma/listener.hpp"
#include "rdma/work_id.hpp"

namespace weir::rdma {
namespace {

// rnr 7 is "for ever": a peer that is slow to post receives is not dead. Both ends retry as often as the one
// that connects says (REQ's Retry Count, IBA 12.6.5), and Soft-RoCE in the kernel takes 7 there for ever,
// too: six is the most that finds a vanished peer everywhere.
rdma_conn_param connection_parameters() {
  rdma_conn_param parameters{};
  parameters.responder_resources = 1;
  parameters.initiator_depth = 1;
  parameters.retry_count = 6;
  parameters.rnr_retry_count = 7;
  return parameters;
}

std::string text(const Endpoint& endpoint) {
  std::ostringstream out;
  out << endpoint;
  return out.str();
}

}  // namespace

Connection::Connection(Engine& engine, std::uint64_t tag, Side side, const StreamSettings& settings)
    : engine_(engine),
      tag_(tag),
      side_(side),
      settings_(settings),
      window_(settings.receive_buffer_bytes),
      send_queue_(settings.send_depth, settings.signal_interval, settings.send_buffer_bytes) {}

Connection::~Connection() = default;

// --- coming to be

void Connection::start_connect(const Endpoint& peer, ConnectOpPtr op) {
  connect_op_ = std::move(op);
  remote_ = peer;
  state_ = State::resolving;
  Result<CmId> id = engine_.make_id();
  if (!id) return end(id.error().code, std::move(id.error().what));
  id_ = std::move(*id);
  id_.set_context(static_cast<CmOwner*>(this));
  id_.set_ack_timeout(settings_.ack_timeout);
  Endpoint copy = peer;
  const auto timeout_ms = static_cast<int>(settings_.resolve_timeout.count());
  if (rdma_resolve_addr(id_.get(), nullptr, copy.data(), timeout_ms) != 0)
    end(Errc::address_unresolved,
        "cannot resolve " + text(peer) + " over RDMA: " + std::generic_category().message(errno));
}

Result<void> Connection::start_accept(CmId id, Listener& listener) {
  id_ = std::move(id);
  id_.set_context(static_cast<CmOwner*>(this));
  id_.set_ack_timeout(settings_.ack_timeout);
  state_ = State::accepting;
  Result<void> prepared = prepare();
  if (!prepared) {
    rdma_reject(id_.get(), nullptr, 0);
  } else if (rdma_conn_param parameters = connection_parameters(); rdma_accept(id_.get(), &parameters) != 0) {
    prepared = fail_os(Errc::device_error, "cannot accept an RDMA connection", errno);
  }
  if (prepared)
    listener_ = &listener;
  else
    end(prepared.error().code, prepared.error().what);
  return prepared;
}

Result<void> Connection::prepare() {
  Result<Device*> device = engine_.device_for(id_->verbs);
  if (!device) return std::unexpected(device.error());
  device_ = *device;
  // Data requests are signalled so rarely that the depth bounds them amply.
  Result<Device::Queue*> queue = device_->reserve(queue_entries());
  if (!queue) return std::unexpected(queue.error());
  queue_ = *queue;

  const std::size_t slots = settings_.receive_depth + std::size_t{SendQueue::max_marks};
  Result<MemoryPool::Block> control = device_->pool().take(slots * control_message_bytes);
  if (!control) return std::unexpected(control.error());
  control_ = std::move(*control);
  Result<std::uint32_t> control_lkey = control_.lkey();
  if (!control_lkey) return std::unexpected(control_lkey.error());
  control_lkey_ = *control_lkey;

  Result<MemoryPool::Block> staging = device_->pool().take(settings_.send_buffer_bytes);
  if (!staging) return std::unexpected(staging.error());
  staging_ = std::move(*staging);
  Result<std::uint32_t> staging_lkey = staging_.lkey();
  if (!staging_lkey) return std::unexpected(staging_lkey.error());
  staging_lkey_ = *staging_lkey;

  if (Result<void> taken = take_buffer(receive_buffers_[0]); !taken) return taken;
  if (Result<void> made = create_queue_pair(); !made) return made;
  return post_receives(settings_.receive_depth);
}

std::uint32_t Connection::queue_entries() const { return settings_.receive_depth + settings_.send_depth; }

Result<void> Connection::take_buffer(ReceiveBuffer& buffer) {
  Result<MemoryPool::Block> block = device_->pool().take(settings_.receive_buffer_bytes);
  if (!block) return std::unexpected(block.error());
  // Only what we announce, and only for as long as this connection lives.
  Result<MemoryRegion> region = MemoryRegion::enroll(
      device_->pd(), block->bytes().first(settings_.receive_buffer_bytes), Access::remote_write);
  if (!region) return std::unexpected(region.error());
  buffer.block = std::move(*block);
  buffer.region = std::move(*region);
  return {};
}

Result<void> Connection::create_queue_pair() {
  max_pieces_ =
      std::clamp<std::uint32_t>(static_cast<std::uint32_t>(std::max(device_->limits().max_sge, 1)), 1, 8);
  // Devices do not say how much they take inline; they refuse what is too much.
  for (std::uint32_t inline_bytes = settings_.inline_bytes;; inline_bytes /= 2) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = queue_->cq.get();
    attributes.recv_cq = queue_->cq.get();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = settings_.send_depth;
    attributes.cap.max_recv_wr = settings_.receive_depth;
    attributes.cap.max_send_sge = max_pieces_;
    attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = inline_bytes;
    if (rdma_create_qp(id_.get(), device_->pd().get(), &attributes) == 0) {
      inline_bytes_ = std::min<std::uint32_t>(attributes.cap.max_inline_data, settings_.inline_bytes);
      return {};
    }
    const int why = errno;
    if (inline_bytes == 0)
      return fail_os(Errc::device_error,
                     "cannot create a queue pair of depth " + std::to_string(settings_.send_depth) + "/" +
                         std::to_string(settings_.receive_depth) + " (the device may want smaller depths)",
                     why);
  }
}

Result<void> Connection::connect_now() {
  state_ = State::connecting;
  if (Result<void> prepared = prepare(); !prepared) return prepared;
  rdma_conn_param parameters = connection_parameters();
  if (rdma_connect(id_.get(), &parameters) == 0) return {};
  return fail_os(Errc::unreachable, "cannot connect to " + text(remote_), errno);
}

void Connection::established() {
  if (state_ != State::accepting && state_ != State::connecting) return;
  state_ = State::established;
  local_ = id_.local();
  remote_ = id_.remote();
  if (side_ == Side::server && settings_.keepalive.count() > 0)
    next_keepalive_ = engine_.now() + settings_.keepalive;
  announce_if_due();
  mark_dirty();
  if (Listener* listener = std::exchange(listener_, nullptr); listener != nullptr) listener->ready(*this);
}

void Connection::on_cm_event(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(id_.get(), static_cast<int>(settings_.resolve_timeout.count())) != 0)
        end(Errc::unreachable,
            "no route to " + text(remote_) + ": " + std::generic_category().message(errno));
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (Result<void> done = connect_now(); !done) end(done.error().code, done.error().what);
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      return established();
    case RDMA_CM_EVENT_ADDR_ERROR:
      return end(Errc::address_unresolved, "no RDMA device reaches " + text(remote_));
    case RDMA_CM_EVENT_REJECTED:
      return end(Errc::refused, text(remote_) + " refused (RDMA connection manager's reason " +
                                    std::to_string(event.status) + "); is its RDMA port open?");
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return end(Errc::unreachable, text(remote_) + " does not answer over RDMA (" +
                                        rdma_event_str(event.type) + ", " + std::to_string(event.status) +
                                        ")");
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

void Connection::on_failed(const ibv_wc& completion) {
  const std::string status = ibv_wc_status_str(completion.status);
  switch (completion.status) {
    case IBV_WC_WR_FLUSH_ERR:  // the queue pair broke or the peer hung up; the event or an earlier error says
                               // why
      return peer_left(asio::error::eof, "the peer closed the connection");
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return peer_left(Errc::connection_lost, "the peer is gone (" + status + ")");
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:  // what Soft-RoCE calls it
      if (WorkId::decode(completion.wr_id).kind == WorkKind::receive)
        return end(Errc::bad_control_length, "peer sent a control message of more than 32 bytes");
      break;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return peer_left(Errc::remote_access,
                       "the peer refused our write into the buffer it announced (" + status + ")");
    default:
      break;
  }
  peer_left(Errc::device_error, "the device failed an operation (" + status + ")");
}

// The connection is over, but what the peer sent before may still wait in the completion queue.
void Connection::peer_left(std::error_code cause, std::string what) {
  if (state_ == State::ended) return;
  // Flushed requests say only that it ended; whatever names a reason is better.
  if (!cause_.code || cause_.code == asio::error::eof) cause_ = {cause, std::move(what)};
  if (state_ != State::established) {
    if (state_ == State::accepting || state_ == State::connecting)
      cause_ = {Errc::refused, text(remote_) + " ended the connection before it was established"};
    return finish();
  }
  engine_.await_empty(*this);
}

void Connection::on_queue_empty() {
  if (state_ != State::ended) finish();
}

void Connection::end(std::error_code cause, std::string what) {
  if (state_ == State::ended) return;
  cause_ = {cause, std::move(what)};
  finish();
}

void Connection::finish() {
  const bool was_up = state_ == State::established || state_ == State::closing;
  state_ = State::ended;
  if (was_up) rdma_disconnect(id_.get());
  release_device();
  if (Listener* listener = std::exchange(listener_, nullptr); listener != nullptr) {
    listener->failed(*this);
    abandoned_ = true;  // it never had a stream
  }
  if (abandoned_)
    discard();
  else
    mark_dirty();
}

// Nobody will read what is left.
void Connection::discard() {
  for (ReceiveBuffer& buffer : receive_buffers_) buffer.block = {};
  engine_.discard(*this);
}

// The queue pair and the peer's rights go now; the receive buffers may hold bytes that nobody has read yet.
void Connection::release_device() {
  id_ = CmId();
  for (ReceiveBuffer& buffer : receive_buffers_) buffer.region.reset();
  staging_ = {};
  control_ = {};
  if (queue_ != nullptr) Device::release(*queue_, queue_entries());
  queue_ = nullptr;
  engine_.connection_ended();
}

void Connection::abandon() {
  abandoned_ = true;
  cancel_connect();
  cancel_read();
  cancel_write();
  if (state_ == State::ended || state_ == State::idle) {
    if (state_ == State::idle) engine_.connection_ended();
    state_ = State::ended;
    return discard();
  }
  if (state_ != State::established) return end(Errc::closed, "closed before it was connected");
  state_ = State::closing;
  linger_until_ = engine_.now() + settings_.linger;
  try_hang_up();
}

// Disconnecting flushes whatever is under way, so the last write must be known to be done first.
void Connection::try_hang_up() {
  if (send_queue_.outstanding() == 0) return finish();
  if (!send_queue_.has_unsignalled()) return;
  ibv_send_wr wr{};  // an empty write: no message for the peer, but its completion stands for all before it
  wr.wr_id = WorkId{tag_, WorkKind::send}.encode();
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = peer_window_.base();
  wr.wr.rdma.rkey = peer_window_.rkey();
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(id_->qp, &wr, &bad) != 0) return finish();
  send_queue_.posted(0, true);
  engine_.kick();
}

void Connection::on_tick(Clock::time_point now) {
  if (state_ == State::closing && now >= linger_until_) return end(Errc::closed, "closed");
  if (state_ != State::established || next_keepalive_ == Clock::time_point{} || now < next_keepalive_) return;
  next_keepalive_ = now + settings_.keepalive;
  // A full queue means that the peer has yet to take what we sent: its fate will show without our asking.
  if (send_queue_.room_for_control()) send_control(Keepalive{});
}

}  // namespace weir::rdma

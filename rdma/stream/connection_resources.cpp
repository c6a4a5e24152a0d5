// The resources that a connection takes from the device before its first packet and returns at its end.
#include <algorithm>
#include <utility>

#include "rdma/device/work_id.hpp"
#include "rdma/engine.hpp"
#include "rdma/stream/connection.hpp"

namespace weir::rdma {

Result<Connection*> Connection::make(Engine& engine, Side side, const StreamSettings& settings) {
  if (Result<void> good = check(settings); !good) return std::unexpected(good.error());
  const auto make = [&](std::uint64_t tag) {
    return std::make_unique<Connection>(engine, tag, side, settings);
  };
  const Result<ConnectionLife*> made = engine.admit(make, settings.keepalive);
  if (!made) return std::unexpected(made.error());
  return static_cast<Connection*>(*made);
}

Connection::Connection(ConnectionHost& engine, std::uint64_t tag, Side side, const StreamSettings& settings)
    : ConnectionLife(engine, tag, side, {settings.resolve_timeout, settings.ack_timeout, settings.linger}),
      settings_(settings),
      receive_size_(settings.receive_buffer_bytes),
      send_queue_(settings.send_depth, settings.signal_interval, settings.send_buffer_bytes) {}

Connection::~Connection() = default;

Result<void> Connection::prepare() {
  // Data requests are rarely signalled, so the depth is a generous bound.
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
  max_pieces_ =
      std::clamp<std::uint32_t>(static_cast<std::uint32_t>(std::max(device_->limits().max_sge, 1)), 1, 8);
  const QueuePairShape shape{.send_depth = settings_.send_depth,
                             .receive_depth = settings_.receive_depth,
                             .max_pieces = max_pieces_,
                             .inline_bytes = settings_.inline_bytes,
                             .send_cq = queue_->cq.get(),
                             .receive_cq = queue_->cq.get()};
  if (Result<void> made = create_queue_pair(shape); !made) return made;
  return post_receives(settings_.receive_depth);
}

std::uint32_t Connection::queue_entries() const { return settings_.receive_depth + settings_.send_depth; }

Result<void> Connection::take_buffer(ReceiveBuffer& buffer) {
  // Zeroed, because only the peer says how much has arrived (ReceiveWindow): a byte that it claims but never
  // wrote must not be another peer's old data.
  Result<MemoryPool::Block> block = device_->pool().take_zeroed(settings_.receive_buffer_bytes);
  if (!block) return std::unexpected(block.error());
  // Registers only what we announce, and only for the life of this connection.
  Result<PeerRight> right =
      PeerRight::make(*device_, block->bytes().first(settings_.receive_buffer_bytes), Access::remote_write);
  if (!right) return std::unexpected(right.error());
  buffer.block = std::move(*block);
  buffer.right = std::move(*right);
  return {};
}

void Connection::on_established() {
  if (side_ == Side::server && settings_.keepalive.count() > 0)
    next_keepalive_ = engine_.now() + settings_.keepalive;
  announce_if_due();
}

void Connection::on_abandoned() {
  cancel_read();
  cancel_write();
}

// If no request in flight will report completion, posts one that does.
bool Connection::drained() {
  if (send_queue_.outstanding() == 0) return true;
  if (!send_queue_.has_unsignalled()) return false;
  ibv_send_wr wr{};  // an empty write: the peer sees no message, but its completion covers all before it
  wr.wr_id = WorkId{tag_, WorkKind::send}.encode();
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = peer_window_.base();
  wr.wr.rdma.rkey = peer_window_.rkey();
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(id_->qp, &wr, &bad) != 0) return true;
  send_queue_.posted(0, true);
  engine_.kick();
  return false;
}

// The receive buffers may hold bytes that nobody has read yet.
void Connection::revoke_rights() {
  for (ReceiveBuffer& buffer : receive_buffers_) buffer.right = {};
}

void Connection::release_resources() {
  staging_ = {};
  control_ = {};
  kept_.clear();
  if (queue_ != nullptr) Device::release(*queue_, queue_entries());
}

void Connection::release_unread() {
  for (ReceiveBuffer& buffer : receive_buffers_) buffer.block = {};
}

Error Connection::explain(const ibv_wc& completion) const {
  const bool too_long = completion.status == IBV_WC_LOC_LEN_ERR ||
                        completion.status == IBV_WC_LOC_QP_OP_ERR;  // Soft-RoCE reports this one
  if (too_long && WorkId::decode(completion.wr_id).kind == WorkKind::receive)
    return {Errc::bad_control_length, "peer sent a control message of more than 32 bytes"};
  return {};
}

void Connection::on_tick(Clock::time_point now) {
  ConnectionLife::on_tick(now);
  if (state_ != State::established || next_keepalive_ == Clock::time_point{} || now < next_keepalive_) return;
  next_keepalive_ = now + settings_.keepalive;
  // A full queue means that the peer has not yet taken what we sent: its fate will show without a probe.
  if (send_queue_.room_for_control()) send_control(Keepalive{});
}

}  // namespace weir::rdma

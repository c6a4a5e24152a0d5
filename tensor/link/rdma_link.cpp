#include "tensor/link/rdma_link.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "rdma/device/work_id.hpp"
#include "tensor/link/rdma_link_shape.hpp"

namespace weir::tensor {

using rdma::WorkId;
using rdma::WorkKind;

namespace {

class ConnectDone final : public rdma::IoOp<std::error_code> {
 public:
  explicit ConnectDone(std::function<void()> up) : up_(std::move(up)) {}
  // Failures are reported by on_end().
  void complete(std::error_code failed) override {
    const std::function<void()> up = std::move(up_);
    delete this;
    if (!failed && up) up();
  }
  void destroy() override { delete this; }

 private:
  std::function<void()> up_;
};

}  // namespace

Result<RdmaLink*> RdmaLink::connect(rdma::Engine& engine, const rdma::Endpoint& peer,
                                    const RdmaLinkSettings& settings, LinkEvents& events,
                                    std::function<void()> on_up) {
  const auto make = [&](std::uint64_t tag) {
    return std::make_unique<RdmaLink>(engine, tag, Side::client, settings);
  };
  const rdma::Result<ConnectionLife*> made = engine.admit(make, settings.keepalive);
  if (!made) return fail(Errc::too_much, made.error().what);
  auto* link = static_cast<RdmaLink*>(*made);
  link->events_ = &events;
  link->start_connect(peer, rdma::ConnectOpPtr(new ConnectDone(std::move(on_up))));
  return link;
}

rdma::Result<rdma::ConnectionLife*> RdmaLink::accept(rdma::Engine& engine, const RdmaLinkSettings& settings) {
  const auto make = [&](std::uint64_t tag) {
    return std::make_unique<RdmaLink>(engine, tag, Side::server, settings);
  };
  return engine.admit(make, settings.keepalive);
}

RdmaLink::RdmaLink(rdma::Engine& engine, std::uint64_t tag, Side side, const RdmaLinkSettings& settings)
    : ConnectionLife(engine, tag, side, {settings.resolve_timeout, settings.ack_timeout, settings.linger}),
      settings_(settings),
      grants_(shape::window),
      ring_(shape::send_depth, shape::signal_interval) {}

RdmaLink::~RdmaLink() = default;

void RdmaLink::set_events(LinkEvents& events) {
  events_ = &events;
  mark_dirty();
}

// --- setting up

rdma::Result<void> RdmaLink::greeted(std::span<const std::byte> bytes) {
  const Result<wire::Greeting> theirs = wire::parse_greeting(bytes);
  if (!theirs) return rdma::fail(rdma::Errc::not_a_channel, theirs.error().what);
  theirs_ = *theirs;
  credits_ = rdma::Credits(theirs_.window);
  return {};
}

rdma::Result<void> RdmaLink::prepare() {
  rdma::Result<rdma::Device::Queue*> queue =
      device_->reserve(shape::receives + shape::send_depth, rdma::Device::Wake::any);
  if (!queue) return std::unexpected(queue.error());
  queue_ = *queue;
  struct Wanted {
    rdma::MemoryPool::Block& block;
    std::uint32_t& lkey;
    std::size_t bytes;
  };
  for (const Wanted& each : {Wanted{receive_block_, lkeys_.receive, shape::receives * wire::message_bytes},
                             Wanted{send_block_, lkeys_.send, shape::send_blocks * wire::message_bytes}}) {
    auto block = device_->pool().take(each.bytes);
    if (!block) return std::unexpected(block.error());
    each.block = std::move(*block);
    const rdma::Result<std::uint32_t> lkey = each.block.lkey();
    if (!lkey) return std::unexpected(lkey.error());
    each.lkey = *lkey;
  }
  auto table = device_->pool().take_zeroed(shape::table_bytes);
  if (!table) return std::unexpected(table.error());
  table_block_ = std::move(*table);
  const std::span<std::byte> memory = table_block_.bytes().first(shape::table_bytes);
  const rdma::Result<std::uint32_t> table_lkey = table_block_.lkey();
  if (!table_lkey) return std::unexpected(table_lkey.error());
  lkeys_.table = *table_lkey;
  auto right = rdma::PeerRight::make(*device_, memory, rdma::Access::remote_write);
  if (!right) return std::unexpected(right.error());
  table_ = std::move(*right);
  greeting_ =
      wire::encode(wire::Greeting{.window = shape::window,
                                  .generation = settings_.generation,
                                  .records = {table_.address(), shape::records_bytes, table_.rkey()}});

  most_pieces_ = static_cast<std::uint32_t>(std::clamp(device_->limits().max_sge, 1, shape::most_pieces));
  const QueuePairShape wanted{.send_depth = shape::send_depth,
                              .receive_depth = shape::receives,
                              .max_pieces = most_pieces_,
                              .inline_bytes = shape::inline_bytes,
                              .send_cq = queue_->cq.get(),
                              .receive_cq = queue_->cq.get()};
  if (rdma::Result<void> made = create_queue_pair(wanted); !made) return made;
  for (std::uint32_t i = 0; i < shape::receives; ++i)
    if (!post_receive(i)) return rdma::fail(rdma::Errc::device_error, "the device takes no receives");
  return {};
}

bool RdmaLink::post_receive(std::uint32_t which) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(receive_block_.bytes().data() + which * wire::message_bytes),
                wire::message_bytes, lkeys_.receive};
  ibv_recv_wr wr{};
  wr.wr_id = WorkId{tag_, WorkKind::receive}.encode();
  wr.sg_list = &piece;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(id_->qp, &wr, &bad) == 0;
}

void RdmaLink::on_established() {
  stalled_since_ = engine_.now();
  next_keepalive_ = stalled_since_ + settings_.keepalive;
  // The peer writes there only what a message of ours asked for, and this goes out before any.
  if (table_.unbound()) grant(table_);
}

// --- receiving

void RdmaLink::on_completion(const ibv_wc& completion) {
  if (state_ == State::ended) return;
  if (completion.status != IBV_WC_SUCCESS) return on_failed(completion);
  if (WorkId::decode(completion.wr_id).kind == WorkKind::send) return on_send_done();
  on_receive(completion);
}

void RdmaLink::broke(std::string what) { end(rdma::Errc::bad_frame, std::move(what)); }

void RdmaLink::on_receive(const ibv_wc& completion) {
  const std::uint32_t which = next_receive_;
  next_receive_ = (next_receive_ + 1) % shape::receives;
  const bool record = completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0) return broke("a message arrived without credits");
  const std::uint32_t immediate = ntohl(completion.imm_data);
  const bool data = record || completion.byte_len > 0;
  if (!record && !credits_.returned(immediate)) return broke("the peer gives back more credits than it had");
  if (data && !grants_.take()) return broke("the peer sends more than it was granted");
  if (record) {
    on_record(immediate);
  } else if (data) {
    on_bytes(receive_block_.bytes().subspan(which * wire::message_bytes, completion.byte_len));
  }
  if (state_ == State::ended || !id_) return;
  if (!post_receive(which)) return end(rdma::Errc::device_error, "the device takes no more receives");
  if (data) grants_.posted_again(1);
  mark_dirty();
}

// Messages may arrive before the connection manager reports the connection as established, or before the link
// has an owner. They are kept; the window bounds how many.
void RdmaLink::on_bytes(std::span<const std::byte> message) {
  if (abandoned_) return;
  if (state_ != State::established || events_ == nullptr || !early_.empty())
    early_.emplace_back(message.begin(), message.end());
  else
    events_->on_frame(message);
}

void RdmaLink::deliver_early() {
  while (!early_.empty() && state_ == State::established && events_ != nullptr) {
    const std::vector<std::byte> message = std::move(early_.front());
    early_.pop_front();
    events_->on_frame(message);
  }
}

// The other end can write to the table at any time, so the record is copied out once and then checked.
void RdmaLink::on_record(std::uint32_t index) {
  std::array<std::byte, wire::record_bytes> bytes;
  const std::uint32_t slot = wire::slot_of(index);
  std::memcpy(bytes.data(), table_block_.bytes().data() + slot * wire::record_bytes, bytes.size());
  const wire::Record record = wire::parse_record(bytes);
  Expected& expected = expected_[slot];
  if (record.index != index || expected.index != index || expected.memory.data() == nullptr)
    return broke("an unexpected transfer ended");
  if (record.bytes > expected.memory.size()) return broke("a transfer is longer than its destination");
  if (expected.lands) {
    const std::byte* from = table_block_.bytes().data() + shape::landing_at(slot);
    std::memcpy(expected.memory.data(), from, static_cast<std::size_t>(record.bytes));
  }
  expected = {};
  if (events_ != nullptr) events_->on_written(record);
}

Result<wire::Memory> RdmaLink::expect(std::uint32_t index, std::span<std::byte> memory) {
  Expected& slot = expected_[wire::slot_of(index)];
  if (state_ != State::established) return fail(Errc::closed, "the link is not up");
  static std::byte nowhere;
  slot = Expected{index, memory.data() != nullptr ? memory : std::span(&nowhere, 0), false, {}};
  if (memory.size() <= shape::landing_bytes) {
    slot.lands = true;
    return wire::Memory{table_.address() + shape::landing_at(wire::slot_of(index)), memory.size(),
                        table_.rkey()};
  }
  auto right = rdma::PeerRight::make(*device_, memory, rdma::Access::remote_write);
  if (!right) {
    slot = {};
    return fail(Errc::device, right.error().what);
  }
  slot.right = std::move(*right);
  to_grant_ = true;
  return wire::Memory{slot.right.address(), memory.size(), slot.right.rkey()};
}

void RdmaLink::forget(std::uint32_t index) {
  Expected& slot = expected_[wire::slot_of(index)];
  if (slot.index != index) return;
  // An honest peer may be writing there. It is refused now, which ends the link, and is no trespass.
  if (slot.right && id_ && id_->qp != nullptr) engine_.access_errors().forget(id_->qp);
  slot = {};
}

Result<std::vector<wire::Memory>> RdmaLink::expose(const Source& source) {
  if (source.pieces().size() > wire::most_sources) return fail(Errc::bad_array, "too many pieces to read");
  if (device_ == nullptr) return fail(Errc::closed, "the link is not up");
  const auto rights = source.rights_for(*device_);
  if (!rights) return std::unexpected(rights.error());
  std::vector<wire::Memory> places;
  for (std::size_t i = 0; i < source.pieces().size(); ++i)
    places.push_back({(*rights)[i].address(), source.pieces()[i].size(), (*rights)[i].rkey()});
  return places;
}

// --- ending

void RdmaLink::leave() {
  events_ = nullptr;
  abandon();
}

void RdmaLink::break_off(const Error& cause) {
  end(cause.code == Errc::protocol ? rdma::Errc::bad_frame : rdma::Errc::closed, cause.what);
}

// After leave(), messages still go out, but transfers are pointless. Expected memory is its owner's again.
void RdmaLink::on_abandoned() {
  reads_.clear();
  for (const Expected& each : expected_) forget(each.index);
  early_.clear();
  if (state_ == State::established) pump();
}

bool RdmaLink::drained() {
  if (!outbox_.empty()) return false;
  if (ring_.outstanding() == 0) return true;
  if (ring_.has_unsignalled() && ring_.room() > 0) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    post(wr, Posted{}, true);
  }
  return false;
}

void RdmaLink::revoke_rights() {
  for (Expected& each : expected_) each.right = {};
  table_ = {};
}

void RdmaLink::release_resources() {
  ring_.clear();
  outbox_.clear();
  reads_.clear();
  for (Expected& each : expected_) each = {};
  if (queue_ != nullptr) rdma::Device::release(*queue_, shape::receives + shape::send_depth);
}

rdma::Error RdmaLink::explain(const ibv_wc& completion) const {
  if (completion.status == IBV_WC_LOC_LEN_ERR && WorkId::decode(completion.wr_id).kind == WorkKind::receive)
    return {rdma::Errc::bad_frame, "the peer sent a message of more than 4096 bytes"};
  // Its memory is its owner's again, so nothing may open it any more.
  if (completion.status == IBV_WC_MW_BIND_ERR)
    return {rdma::Errc::connection_lost, "a transfer was given up before its request was sent"};
  return {};
}

void RdmaLink::on_tick(rdma::Clock::time_point now) {
  ConnectionLife::on_tick(now);
  if (state_ != State::established) return;
  // A transfer holds its version, so a peer that asks for one but posts no receive is given up after a while.
  if (!outbox_.has_transfer() || credits_.left() > 0)
    stalled_since_ = now;
  else if (now - stalled_since_ > shape::longest_stall)
    return end(rdma::Errc::unreachable, "the peer takes nothing of what it asked for");
  if (now < next_keepalive_) return;
  next_keepalive_ = now + settings_.keepalive;
  // An empty WRITE consumes no receive at the peer, and fails if the peer is gone.
  if (ring_.room() == 0 || (ring_.outstanding() > 0 && !ring_.has_unsignalled())) return;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  post(wr, Posted{}, true);
}

void RdmaLink::notify() {
  dirty_ = false;
  deliver_early();
  if (state_ == State::established || state_ == State::closing) {
    pump();
    acknowledge();
  }
  if (!abandoned_) notify_connector();
  if (!abandoned_ && ended() && !end_told_ && events_ != nullptr) {
    end_told_ = true;
    const bool theirs = end_cause().code == rdma::make_error_code(rdma::Errc::bad_frame) ||
                        end_cause().code == rdma::make_error_code(rdma::Errc::not_a_channel);
    const bool refused = end_cause().code == rdma::make_error_code(rdma::Errc::device_error) ||
                         end_cause().code == rdma::make_error_code(rdma::Errc::memory_limit) ||
                         end_cause().code == rdma::make_error_code(rdma::Errc::no_device);
    const Errc code = theirs ? Errc::protocol : refused ? Errc::device : Errc::peer_gone;
    events_->on_end(Error{code, end_cause().what, theirs_.generation});
    return;
  }
  try_hang_up();
}

}  // namespace weir::tensor

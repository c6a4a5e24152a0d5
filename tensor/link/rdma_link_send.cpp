// Posts messages, transfers and reads to the device.
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "rdma/device/work_id.hpp"
#include "tensor/link/rdma_link.hpp"
#include "tensor/link/rdma_link_shape.hpp"

namespace weir::tensor {

namespace {
std::uintptr_t address(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }
}  // namespace

void RdmaLink::send(const wire::Message& message) {
  if (state_ != State::established) return;
  if (const std::string_view fault = outbox_.put(message); !fault.empty()) return broke(std::string(fault));
  mark_dirty();
}

void RdmaLink::write(Transfer transfer) {
  if (state_ != State::established) return;
  if (const std::string_view fault = outbox_.put(std::move(transfer)); !fault.empty())
    return broke(std::string(fault));
  mark_dirty();
}

Result<void> RdmaLink::read(std::uint32_t index, std::span<const wire::Memory> sources) {
  const Expected& expected = expected_[wire::slot_of(index)];
  if (state_ != State::established) return fail(Errc::closed, "the link is not up");
  std::uint64_t bytes = 0;
  for (const wire::Memory& each : sources) {
    if (each.bytes > expected.memory.size() - bytes)
      return fail(Errc::protocol, "the hub reports more bytes than the array has");
    bytes += each.bytes;
  }
  if (expected.index != index || bytes != expected.memory.size() || bytes == 0)
    return fail(Errc::protocol, "the hub reports fewer bytes than the array has");
  reads_.push_back(Reading{index, {sources.begin(), sources.end()}});
  mark_dirty();
  return {};
}

std::uint32_t RdmaLink::give_credits() { return htonl(grants_.give()); }

// Sends until the queue is full, credits run out, nothing is left, or this link's turn is over.
void RdmaLink::pump() {
  if (to_grant_ && !grant_expected()) return;
  while (outbox_.has_frame() && post_frame()) {
  }
  std::uint64_t turn = 0;
  while (outbox_.has_transfer() && turn < shape::turn_bytes) {
    Outgoing& outgoing = outbox_.transfer();
    const std::uint64_t before = outgoing.sent();
    if (!post_data(outgoing)) return;
    turn += outgoing.sent() - before;
    if (!outgoing.all_sent()) continue;
    if (!post_record(outgoing.transfer())) return;
    outbox_.transfer_is_out();
  }
  while (!reads_.empty() && turn < shape::turn_bytes) {
    Reading& reading = reads_.front();
    const std::uint64_t before = reading.done;
    if (!post_reads(reading)) return;
    turn += reading.done - before;
    if (reading.source == reading.sources.size()) reads_.pop_front();
  }
  if (turn >= shape::turn_bytes) mark_dirty();
}

bool RdmaLink::grant(rdma::PeerRight& right) {
  ibv_send_wr wr = right.bind();
  return post(wr, Posted{}, ring_.must_signal());
}

// Before the messages that carry their keys. False: the queue is full.
bool RdmaLink::grant_expected() {
  for (Expected& each : expected_) {
    if (!each.right.unbound()) continue;
    if (ring_.room() == 0 || !grant(each.right)) return false;
  }
  to_grant_ = false;
  return true;
}

bool RdmaLink::post_frame() {
  if (ring_.room() == 0 || credits_.left() == 0) return false;
  const std::vector<std::byte>& bytes = outbox_.frame();
  const bool inlined = bytes.size() <= inline_bytes_;
  if (!inlined && messages_posted_ - messages_done_ >= shape::send_blocks) return false;
  ibv_sge piece{address(bytes.data()), static_cast<std::uint32_t>(bytes.size()), 0};
  if (!inlined) {
    std::byte* block =
        send_block_.bytes().data() + (messages_posted_ % shape::send_blocks) * wire::message_bytes;
    std::memcpy(block, bytes.data(), bytes.size());
    piece.addr = address(block);
    piece.lkey = lkeys_.send;
  }
  ibv_send_wr wr{};
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.send_flags = inlined ? IBV_SEND_INLINE : 0;
  wr.imm_data = give_credits();
  credits_.spend();
  messages_posted_ += !inlined;
  const bool posted = post(wr, Posted{nullptr, !inlined, std::nullopt}, !inlined || ring_.must_signal());
  if (posted) outbox_.frame_is_out();
  return posted;
}

// Posts one work request of up to most_pieces_ pieces.
bool RdmaLink::post_data(Outgoing& outgoing) {
  const Transfer& transfer = outgoing.transfer();
  if (outgoing.all_sent()) return true;
  if (ring_.room() < 2) return false;
  const std::optional<std::uint32_t> all = device_->lkey_of_all_memory();
  std::span<const rdma::PeerRight> rights;
  if (!all) {
    const auto made = transfer.source->rights_for(*device_);
    if (!made) {
      end(rdma::Errc::device_error, made.error().what);
      return false;
    }
    rights = *made;
  }
  wire::Memory to = transfer.to;
  to.address += outgoing.sent();
  std::array<Outgoing::Part, shape::most_pieces> parts;
  std::array<ibv_sge, shape::most_pieces> pieces;
  std::size_t used = 0;
  for (const Outgoing::Part& each : outgoing.take(std::span(parts).first(most_pieces_), shape::chunk_bytes)) {
    const auto offset =
        static_cast<std::uint64_t>(each.bytes.data() - transfer.source->pieces()[each.piece].data());
    pieces[used++] = {all ? address(each.bytes.data()) : rights[each.piece].address() + offset,
                      static_cast<std::uint32_t>(each.bytes.size()), all ? *all : rights[each.piece].lkey()};
  }
  ibv_send_wr wr{};
  wr.sg_list = pieces.data();
  wr.num_sge = static_cast<int>(used);
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = to.address;
  wr.wr.rdma.rkey = to.rkey;
  return post(wr, Posted{transfer.source, false, std::nullopt}, ring_.must_signal());
}

bool RdmaLink::post_record(const Transfer& transfer) {
  if (ring_.room() == 0 || credits_.left() == 0) return false;
  const wire::Record& record = transfer.record;
  const std::vector<std::byte> bytes = wire::encode(record);
  ibv_sge piece{address(bytes.data()), static_cast<std::uint32_t>(bytes.size()), 0};
  const bool inlined = bytes.size() <= inline_bytes_;
  if (!inlined) {
    if (messages_posted_ - messages_done_ >= shape::send_blocks) return false;
    std::byte* block =
        send_block_.bytes().data() + (messages_posted_ % shape::send_blocks) * wire::message_bytes;
    std::memcpy(block, bytes.data(), bytes.size());
    piece.addr = address(block);
    piece.lkey = lkeys_.send;
    ++messages_posted_;
  }
  ibv_send_wr wr{};
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.send_flags = inlined ? IBV_SEND_INLINE : 0;
  wr.imm_data = htonl(record.index);
  wr.wr.rdma.remote_addr = theirs_.records.address + wire::slot_of(record.index) * wire::record_bytes;
  wr.wr.rdma.rkey = theirs_.records.rkey;
  credits_.spend();
  // Signalled, because its completion releases the source.
  return post(wr, Posted{transfer.source, !inlined, std::nullopt}, true);
}

// Posts one work request; the last of an index is marked, so that its completion reports on_read().
bool RdmaLink::post_reads(Reading& reading) {
  const Expected& expected = expected_[wire::slot_of(reading.index)];
  if (expected.index != reading.index || reading.sources.empty()) {  // forgotten, or nothing to read
    reading.source = reading.sources.size();
    return true;
  }
  if (ring_.room() == 0) return false;
  const wire::Memory& source = reading.sources[reading.source];
  const std::size_t share = std::min<std::uint64_t>(shape::chunk_bytes, source.bytes - reading.in_source);
  const std::uint64_t at =
      expected.lands ? address(table_block_.bytes().data() + shape::landing_at(wire::slot_of(reading.index)))
                     : expected.right.address();
  ibv_sge piece{at + reading.done, static_cast<std::uint32_t>(share),
                expected.lands ? lkeys_.table : expected.right.lkey()};
  ibv_send_wr wr{};
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_READ;
  wr.wr.rdma.remote_addr = source.address + reading.in_source;
  wr.wr.rdma.rkey = source.rkey;
  reading.done += share;
  reading.in_source += share;
  if (reading.in_source == source.bytes) {
    ++reading.source;
    reading.in_source = 0;
  }
  const bool last = reading.source == reading.sources.size();
  Posted keep;
  if (last) keep.read = reading.index;
  return post(wr, std::move(keep), last || ring_.must_signal());
}

void RdmaLink::acknowledge() {
  if (state_ != State::established || ring_.room() == 0 || !grants_.ack_wanted()) return;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = give_credits();
  post(wr, Posted{}, ring_.must_signal());
}

bool RdmaLink::post(ibv_send_wr& wr, Posted keep, bool signal) {
  wr.wr_id = rdma::WorkId{tag_, rdma::WorkKind::send}.encode();
  if (signal) wr.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  if (const int failed = ibv_post_send(id_->qp, &wr, &bad); failed != 0) {
    end(rdma::Errc::device_error, "the device refused a request: " + std::generic_category().message(failed));
    return false;
  }
  ring_.posted(std::move(keep), signal);
  engine_.kick();
  return true;
}

void RdmaLink::on_send_done() {
  std::array<std::uint32_t, wire::slots> read;
  std::size_t reads = 0;
  const bool known = ring_.completed([&](Posted done) {
    messages_done_ += done.message;
    if (done.read && reads < read.size()) read[reads++] = *done.read;
  });
  if (!known) return end(rdma::Errc::device_error, "the device completed a send that was never posted");
  for (const std::uint32_t index : std::span(read).first(reads)) {
    Expected& expected = expected_[wire::slot_of(index)];
    if (expected.index != index || expected.memory.data() == nullptr) continue;
    if (expected.lands)
      std::memcpy(expected.memory.data(),
                  table_block_.bytes().data() + shape::landing_at(wire::slot_of(index)),
                  expected.memory.size());
    expected = {};
    if (events_ != nullptr) events_->on_read(index);
    if (state_ == State::ended) return;
  }
  if (!outbox_.empty() || !reads_.empty() || state_ == State::closing) mark_dirty();
}

}  // namespace weir::tensor

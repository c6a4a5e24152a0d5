// Posts a channel's frames to the device: what an immediate carries, which request is signalled, and
// which one wakes the peer.
#include <arpa/inet.h>

#include <algorithm>
#include <string>
#include <utility>

#include "rdma/channel/channel_connection.hpp"
#include "rdma/device/work_id.hpp"

namespace weir::rdma {

using channel_wire::Immediate;

std::uint32_t ChannelConnection::next_immediate(Immediate::Kind kind) {
  Immediate immediate{.kind = kind, .fetched = 0, .credits = 0};
  if (kind == Immediate::Kind::ack || settings_.credits_ride) immediate.credits = grants_.give();
  immediate.fetched = static_cast<std::uint16_t>(std::min(fetched_due_, Immediate::max_fetched));
  fetched_due_ -= immediate.fetched;
  if (kind == Immediate::Kind::data) counters_.credits_ridden += immediate.credits;
  return htonl(channel_wire::encode(immediate));
}

// The caller has checked can_post(). Without a block the bytes travel inline. `last`: no frame follows now,
// so wake the peer. Also wake it if we cannot send more until it answers, and now and then in a long burst.
bool ChannelConnection::post_frame(std::span<const std::byte> bytes, Posted keep, std::uint32_t lkey,
                                   bool last) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), static_cast<std::uint32_t>(bytes.size()),
                lkey};
  ibv_send_wr wr{};
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = next_immediate(Immediate::Kind::data);
  credits_.spend();
  if (last || credits_.left() == 0 || ++unsolicited_ >= std::max(credits_.window() / 4, 1u)) {
    wr.send_flags |= IBV_SEND_SOLICITED;
    unsolicited_ = 0;
    ++counters_.solicited;
  }
  // A small frame goes inline even if it was gathered in a block.
  if (bytes.size() <= inline_bytes_) {
    wr.send_flags |= IBV_SEND_INLINE;
    ++counters_.inline_frames;
  }
  ++counters_.frames_sent;
  return post(wr, std::move(keep), ring_.must_signal());
}

// If the device refuses, this ends the channel.
bool ChannelConnection::post(ibv_send_wr& wr, Posted keep, bool signal) {
  wr.wr_id = WorkId{tag_, WorkKind::send}.encode();
  if (signal) {
    wr.send_flags |= IBV_SEND_SIGNALED;
    ++counters_.signalled;
  }
  ibv_send_wr* bad = nullptr;
  if (const int failed = ibv_post_send(id_->qp, &wr, &bad); failed != 0) {
    end(Errc::device_error, "the device refused a request: " + std::generic_category().message(failed));
    return false;
  }
  ring_.posted(std::move(keep), signal);
  engine_.kick();
  return true;
}

void ChannelConnection::acknowledge() {
  if (state_ == State::ended || ring_.room() == 0) return;
  if (fetched_due_ == 0 && !grants_.ack_wanted()) return;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.send_flags = IBV_SEND_SOLICITED;
  wr.imm_data = next_immediate(Immediate::Kind::ack);
  ++counters_.acks_sent;
  post(wr, Posted{}, ring_.must_signal());
}

void ChannelConnection::post_probe() {
  if (ring_.room() == 0) return;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  post(wr, Posted{}, true);
}

void ChannelConnection::on_send_done() {
  bool fetched = false;
  const bool known = ring_.completed([&](Posted done) {
    staged_ -= done.staged;
    if (!done.fetch) return;
    done.block.reset();
    on_fetched();
    fetched = true;
  });
  if (!known) return end(Errc::device_error, "the device completed a send that was never posted");
  if (fetched || wants_writable_ || open_.block || !waiting_.empty() || unfetched_ > 0 ||
      state_ == State::closing)
    mark_dirty();
}

}  // namespace weir::rdma

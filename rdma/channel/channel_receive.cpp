// The receiving half of a channel: frames in, messages out, and returned window.
#include <arpa/inet.h>

#include <cstring>
#include <string>
#include <utility>

#include "rdma/channel/channel_connection.hpp"
#include "rdma/channel/shared_receives.hpp"
#include "rdma/device/work_id.hpp"

namespace weir::rdma {

using channel_wire::Immediate;

namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

}  // namespace

void ChannelConnection::on_receive(const ibv_wc& completion) {
  if (posted_.empty()) return end(Errc::device_error, "the device completed a receive that was never posted");
  on_received(completion, posted_.take_front());
}

// The device owned `block` until now.
void ChannelConnection::on_shared_receive(const ibv_wc& completion, std::unique_ptr<ChannelBlock> block) {
  heard(completion);
  if (state_ == State::ended || completion.status != IBV_WC_SUCCESS) {
    shared_->give_back(std::move(block));
    return on_completion(completion);
  }
  ++counters_.shared_frames;
  on_received(completion, store_->adopt(std::move(block), BlockUse::posted));
}

void ChannelConnection::on_received(const ibv_wc& completion, BlockRef block) {
  const std::size_t bytes = completion.byte_len;
  if (completion.opcode != IBV_WC_RECV || (completion.wc_flags & IBV_WC_WITH_IMM) == 0)
    return end(Errc::bad_immediate, "peer sent what is no frame");
  const std::expected<Immediate, Errc> immediate = channel_wire::parse_immediate(ntohl(completion.imm_data));
  const bool ack = immediate && immediate->kind == Immediate::Kind::ack;
  if (!immediate || (ack && (bytes > 0 || (immediate->credits == 0 && immediate->fetched == 0))))
    return end(Errc::bad_immediate, "peer sent an immediate that means nothing");
  if (!credits_.returned(immediate->credits))
    return end(Errc::bad_immediate,
               "peer gives back " + std::to_string(immediate->credits) + " frames more than it was sent");
  if (immediate->fetched > offered_.size())
    return end(Errc::bad_immediate, "peer says it fetched " + std::to_string(immediate->fetched) +
                                        " messages, and was offered " + std::to_string(offered_.size()));
  for (std::uint16_t i = 0; i < immediate->fetched; ++i) offered_.take_front();
  mark_dirty();

  if (!ack) {
    if (!grants_.take()) return end(Errc::window_overrun, "peer sends more frames than it was granted");
    return on_frame(std::move(block), bytes);
  }
  // Post it again at once: the peer's acknowledgements rely on it (channel_wire.hpp, reserved_receives).
  if (Result<void> posted = post_receive(std::move(block)); !posted)
    end(posted.error().code, std::move(posted.error().what));
}

void ChannelConnection::on_frame(BlockRef block, std::size_t bytes) {
  ++counters_.frames_received;
  ++missing_;
  store_->set_use(*block, BlockUse::held);
  channel_wire::FrameReader reader(std::span<const std::byte>(block->bytes()).first(bytes));
  if (reader.done()) return end(Errc::bad_frame, "peer sent an empty frame");
  while (!reader.done()) {
    const std::expected<channel_wire::Record, Errc> record = reader.next();
    if (!record)
      return end(record.error(), "peer sent a malformed frame of " + std::to_string(bytes) + " bytes");
    if (Result<void> taken = on_record(block, *record); !taken)
      return end(taken.error().code, std::move(taken.error().what));
  }
  // Nothing reads the block any more, and it is warm in the cache: post the same one again.
  if (block->holders > 1 || state_ == State::ended) return;
  --missing_;
  if (Result<void> posted = post_receive(std::move(block)); !posted)
    return end(posted.error().code, std::move(posted.error().what));
  grants_.posted_again(1);
}

Result<void> ChannelConnection::on_record(const BlockRef& block, const channel_wire::Record& record) {
  const auto* offered = std::get_if<channel_wire::Offer>(&record);
  const bool goes_on = offered != nullptr && !offered->whole() && offered->offset > 0;
  if ((assembly_ && !std::holds_alternative<channel_wire::NextPart>(record)) ||
      (parts_offered_ < parts_total_ && !goes_on))
    return fail(Errc::bad_frame, "peer began a message within another");
  return std::visit(Overloaded{[&](const channel_wire::WholeMessage& whole) -> Result<void> {
                                 if (whole.body.size() > settings_.max_message_bytes)
                                   return fail(Errc::oversize_message, "peer sent a message too long");
                                 deliver(block.share(), whole.body);
                                 return {};
                               },
                               [&](const channel_wire::FirstPart& part) { return on_first(part); },
                               [&](const channel_wire::NextPart& part) { return on_next(part); },
                               [&](const channel_wire::Offer& offer) { return on_offer(offer); }},
                    record);
}

void ChannelConnection::deliver(BlockRef block, std::span<const std::byte> bytes) {
  ++counters_.messages_received;
  counters_.bytes_received += bytes.size();
  if (abandoned_) return;
  fresh_input_ = true;
  inbound_.push_back(
      {.state = Inbound::State::ready, .block = std::move(block), .bytes = bytes, .offer = {}});
}

Result<void> ChannelConnection::on_first(const channel_wire::FirstPart& part) {
  if (part.total > settings_.max_message_bytes)
    return fail(Errc::oversize_message, "peer begins a message of " + std::to_string(part.total) +
                                            " bytes, allowed are " +
                                            std::to_string(settings_.max_message_bytes));
  Result<BlockRef> whole = store_->large(part.total, BlockUse::held);
  if (!whole) return std::unexpected(whole.error());
  assembly_ = std::move(*whole);
  assembly_total_ = part.total;
  assembly_used_ = 0;
  return on_next({part.body});
}

Result<void> ChannelConnection::on_next(const channel_wire::NextPart& part) {
  if (!assembly_) return fail(Errc::bad_frame, "peer continues a message that it did not begin");
  if (part.body.size() > assembly_total_ - assembly_used_)
    return fail(Errc::bad_frame, "peer's message has more bytes than it said");
  std::memcpy(assembly_->bytes().data() + assembly_used_, part.body.data(), part.body.size());
  assembly_used_ += static_cast<std::uint32_t>(part.body.size());
  counters_.copied_bytes += part.body.size();
  if (assembly_used_ < assembly_total_) return {};
  const std::span<const std::byte> bytes = assembly_->bytes().first(assembly_total_);
  deliver(std::move(assembly_), bytes);
  return {};
}

Result<void> ChannelConnection::on_offer(const channel_wire::Offer& offer) {
  if (offer.total > settings_.max_message_bytes)
    return fail(Errc::oversize_message, "peer offers a message of " + std::to_string(offer.total) +
                                            " bytes, allowed are " +
                                            std::to_string(settings_.max_message_bytes));
  if (unfetched_ + fetching_ + fetched_due_ >= settings_.rendezvous_depth)
    return fail(Errc::window_overrun, "peer offers more messages than it was granted");
  if (!offer.whole()) {
    if (offer.offset == 0) {
      parts_total_ = offer.total;
      parts_offered_ = 0;
    }
    if (offer.total != parts_total_ || offer.offset != parts_offered_)
      return fail(Errc::bad_frame, "peer offers a part that is not the next one of its message");
    if (offer.length < channel_wire::min_part_bytes && !offer.last())
      return fail(Errc::bad_frame, "peer offers a message in parts of " + std::to_string(offer.length) +
                                       " bytes, too many to remember");
    parts_offered_ += offer.length;
  }
  ++unfetched_;
  inbound_.push_back({.state = Inbound::State::offered, .block = {}, .bytes = {}, .offer = offer});
  return {};
}

// READs offered messages in order. The message that the application waits for may always be fetched; further
// ones need room within the limit on held bytes.
void ChannelConnection::start_fetches() {
  while (unfetched_ > 0 && state_ != State::ended && ring_.room() > 0) {
    // Offered messages follow fetching ones; ready ones may be anywhere.
    std::size_t at = 0;
    while (inbound_[at].state != Inbound::State::offered) ++at;
    Inbound& next = inbound_[at];
    if (!fetching_into_) {
      if (at > 0 && store_->held_bytes() >= settings_.held_bytes) return;
      Result<BlockRef> block = store_->large(next.offer.total, BlockUse::held);
      if (!block) {  // retried when a block is released, and at each tick
        ++counters_.stalls;
        return;
      }
      fetching_into_ = std::move(*block);
    }
    next.block = next.offer.last() ? std::move(fetching_into_) : fetching_into_.share();
    next.bytes = next.block->bytes().first(next.offer.total);
    next.state = Inbound::State::fetching;
    --unfetched_;
    ++fetching_;
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(next.bytes.data() + next.offer.offset), next.offer.length,
                  next.block->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_READ;
    wr.wr.rdma.remote_addr = next.offer.address;
    wr.wr.rdma.rkey = next.offer.rkey;
    if (!post(wr, Posted{.block = next.block.share(), .staged = false, .fetch = true}, true)) return;
    ++counters_.fetches;
  }
}

void ChannelConnection::on_fetched() {
  std::size_t at = 0;
  while (inbound_[at].state != Inbound::State::fetching) ++at;
  inbound_[at].state = Inbound::State::ready;
  --fetching_;
  ++fetched_due_;
  if (!inbound_[at].is_part()) {
    ++counters_.messages_received;
    counters_.bytes_received += inbound_[at].bytes.size();
    fresh_input_ = true;
  }
  drop_fetched_parts();
}

// The last part represents the whole message.
void ChannelConnection::drop_fetched_parts() {
  while (!inbound_.empty() && inbound_.front().state == Inbound::State::ready && inbound_.front().is_part())
    inbound_.take_front();
}

Result<void> ChannelConnection::post_receive(BlockRef block) {
  if (shared_ != nullptr) return {};  // it returns to the shared receives
  store_->set_use(*block, BlockUse::posted);
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(block->bytes().data()), settings_.block_bytes, block->lkey};
  ibv_recv_wr wr{WorkId{tag_, WorkKind::receive}.encode(), nullptr, &piece, 1};
  ibv_recv_wr* bad = nullptr;
  if (const int failed = ibv_post_recv(id_->qp, &wr, &bad); failed != 0)
    return fail_os(Errc::device_error, "the device refused a receive", failed);
  posted_.push_back(std::move(block));
  return {};
}

// Posts blocks in place of those that the application holds, unless it holds too much.
void ChannelConnection::replenish() {
  while (missing_ > 0 && state_ != State::ended && store_->held_bytes() < settings_.held_bytes) {
    if (shared_ != nullptr) {  // the shared pool has replaced it; only the window waited
      --missing_;
      grants_.posted_again(1);
      continue;
    }
    Result<BlockRef> block = store_->frame(BlockUse::posted);
    if (!block) {  // the pool is at its cap: retried when a block is released, and at each tick
      ++counters_.stalls;
      return;
    }
    if (Result<void> posted = post_receive(std::move(*block)); !posted)
      return end(posted.error().code, std::move(posted.error().what));
    --missing_;
    grants_.posted_again(1);
  }
}

std::optional<Message> ChannelConnection::receive() {
  if (!can_receive()) return std::nullopt;
  Inbound first = inbound_.take_front();
  drop_fetched_parts();
  return Message(std::move(first.block), first.bytes);
}

void ChannelConnection::on_let_go() {
  if (state_ == State::established && (missing_ > 0 || unfetched_ > 0)) mark_dirty();
}

}  // namespace weir::rdma

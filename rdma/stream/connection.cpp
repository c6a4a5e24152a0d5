// The protocol of a connection: control messages, announcements, reading and writing. The resources that it
// takes from the device and returns are in connection_resources.cpp.
#include "rdma/stream/connection.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "rdma/device/work_id.hpp"

namespace weir::rdma {

// Walks the buffers of a gathered write.
class Connection::Gather {
 public:
  explicit Gather(std::span<const asio::const_buffer> buffers) : buffers_(buffers) {
    for (const asio::const_buffer& buffer : buffers) left_ += buffer.size();
    skip_empty();
  }
  std::size_t left() const { return left_; }

  // Describes the next `bytes` in at most pieces.size() elements; 0: they do not suffice. Does not advance.
  std::size_t describe(std::size_t bytes, std::span<ibv_sge> pieces, std::uint32_t lkey) const {
    std::size_t used = 0;
    std::size_t offset = offset_;
    for (std::size_t i = index_; bytes > 0; ++i, offset = 0) {
      const std::size_t take = std::min(bytes, buffers_[i].size() - offset);
      if (take == 0) continue;
      if (used == pieces.size()) return 0;
      const auto* at = static_cast<const std::byte*>(buffers_[i].data()) + offset;
      pieces[used++] = {reinterpret_cast<std::uintptr_t>(at), static_cast<std::uint32_t>(take), lkey};
      bytes -= take;
    }
    return used;
  }

  void copy(std::span<std::byte> into) {
    while (!into.empty()) {
      const std::size_t take = std::min(into.size(), buffers_[index_].size() - offset_);
      std::memcpy(into.data(), static_cast<const std::byte*>(buffers_[index_].data()) + offset_, take);
      into = into.subspan(take);
      advance(take);
    }
  }

  void advance(std::size_t bytes) {
    left_ -= bytes;
    while (bytes > 0) {
      const std::size_t take = std::min(bytes, buffers_[index_].size() - offset_);
      offset_ += take;
      bytes -= take;
      skip_empty();
    }
  }

 private:
  void skip_empty() {
    while (index_ < buffers_.size() && offset_ == buffers_[index_].size()) {
      ++index_;
      offset_ = 0;
    }
  }

  std::span<const asio::const_buffer> buffers_;
  std::size_t index_ = 0;
  std::size_t offset_ = 0;
  std::size_t left_ = 0;
};

std::span<const std::byte> Connection::readable() const {
  const ReceiveWindow::Readable now = window_.readable();
  if (now.bytes == 0) return {};
  return receive_buffers_[now.buffer].block.bytes().subspan(now.offset, now.bytes);
}

void Connection::consume(std::size_t bytes) {
  assert(bytes <= window_.readable().bytes);
  window_.consume(static_cast<std::uint32_t>(bytes));
  announce_if_due();
}

std::size_t Connection::write(std::span<const asio::const_buffer> buffers, const Owner& owner) {
  Gather gather(buffers);
  const std::size_t offered = gather.left();
  if (offered == 0) return 0;  // the protocol has no empty message
  while (state_ == State::established && gather.left() > 0 && peer_window_.room() > 0 &&
         send_queue_.room_for_data())
    if (!write_piece(gather, owner)) break;
  const std::size_t taken = offered - gather.left();
  if (gather.left() > 0) {
    wants_writable_ = true;
    ++stats_.writer_stalls;
  }
  if (taken > 0) engine_.kick();  // a reply is likely
  return taken;
}

// Sends the next piece in the cheapest way: inline in the work request, in place from its owner's memory, or
// through the staging ring. False: none of it can be sent now.
bool Connection::write_piece(Gather& gather, const Owner& owner) {
  std::array<ibv_sge, 8> all;
  const std::span<ibv_sge> pieces = std::span(all).first(max_pieces_);
  std::size_t bytes = std::min<std::size_t>(gather.left(), peer_window_.room());
  if (bytes <= inline_bytes_) {
    if (const std::size_t used = gather.describe(bytes, pieces, 0); used > 0) {
      if (!post_data(pieces.first(used), Source::work_request)) return false;
      gather.advance(bytes);
      return true;
    }
  }
  bytes = std::min<std::size_t>(bytes, settings_.piece_bytes);
  if (owner != nullptr && settings_.zero_copy_bytes > 0 && bytes >= settings_.zero_copy_bytes) {
    const std::optional<std::uint32_t> lkey = device_->lkey_of_all_memory();
    if (const std::size_t used = lkey ? gather.describe(bytes, pieces, *lkey) : 0; used > 0) {
      if (!post_data(pieces.first(used), Source::owner)) return false;
      kept_.push_back({send_queue_.posted(), owner});
      gather.advance(bytes);
      return true;
    }
  }
  bytes = std::min<std::size_t>(bytes, send_queue_.stage_room());
  if (bytes == 0) return false;
  const std::span<std::byte> stage = staging_.bytes().subspan(send_queue_.stage_offset(), bytes);
  gather.copy(stage);
  pieces[0] = {reinterpret_cast<std::uintptr_t>(stage.data()), static_cast<std::uint32_t>(bytes),
               staging_lkey_};
  return post_data(pieces.first(1), Source::staging);
}

bool Connection::post_data(std::span<ibv_sge> pieces, Source source) {
  std::uint32_t bytes = 0;
  for (const ibv_sge& piece : pieces) bytes += piece.length;
  const std::uint32_t staged = source == Source::staging ? bytes : 0;
  const bool signal = source == Source::owner || send_queue_.must_signal(staged);
  ibv_send_wr wr{};
  wr.wr_id = WorkId{tag_, WorkKind::send}.encode();
  wr.sg_list = pieces.data();
  wr.num_sge = static_cast<int>(pieces.size());
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.send_flags = (signal ? unsigned{IBV_SEND_SIGNALED} : 0u) |
                  (source == Source::work_request ? unsigned{IBV_SEND_INLINE} : 0u);
  wr.imm_data = htonl(bytes);
  wr.wr.rdma.remote_addr = peer_window_.address();
  wr.wr.rdma.rkey = peer_window_.rkey();
  ibv_send_wr* bad = nullptr;
  if (const int failed = ibv_post_send(id_->qp, &wr, &bad); failed != 0) {
    end(Errc::device_error, "the device refused a write: " + std::generic_category().message(failed));
    return false;
  }
  send_queue_.posted(staged, signal);
  peer_window_.advance(bytes);
  ++stats_.writes;
  if (source == Source::owner) ++stats_.uncopied;
  stats_.bytes_sent += bytes;
  return true;
}

void Connection::announce_if_due() {
  if (state_ != State::established) return;
  const std::optional<std::uint32_t> due = window_.due();
  if (!due || !send_queue_.room_for_announcement()) return;  // a send completion tries again
  ReceiveBuffer& buffer = receive_buffers_[*due];
  // If there is no memory for a second buffer, the peer waits until the first one is read; nothing is lost.
  if (!buffer.block && !take_buffer(buffer)) return;
  if (buffer.right.unbound() && !grant(buffer.right)) return;
  const std::uint32_t length = stats_.announcements == 0
                                   ? receive_size_.now()
                                   : receive_size_.after(stats_.immediates - immediates_before_);
  immediates_before_ = stats_.immediates;
  ++stats_.announcements;
  window_.announced(*due, length);
  send_control(RegisterXferMemory{buffer.right.address(), length, buffer.right.rkey()});
}

bool Connection::grant(PeerRight& right) {
  ibv_send_wr wr = right.bind();
  wr.wr_id = WorkId{tag_, WorkKind::send}.encode();
  ibv_send_wr* bad = nullptr;
  if (const int failed = ibv_post_send(id_->qp, &wr, &bad); failed != 0) {
    end(Errc::device_error, "the device refused a memory window: " + std::generic_category().message(failed));
    return false;
  }
  send_queue_.posted(0, false);
  return true;
}

// The caller has checked room_for_control(). Always signalled: they are rare, and completion frees the slot.
void Connection::send_control(const ControlMessage& message) {
  const ControlBytes bytes = encode(message);
  const std::uint32_t slot = settings_.receive_depth + next_control_++ % SendQueue::max_marks;
  std::byte* at = control_.bytes().data() + slot * control_message_bytes;
  std::ranges::copy(bytes, at);
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(at), control_message_bytes, control_lkey_};
  ibv_send_wr wr{};
  wr.wr_id = WorkId{tag_, WorkKind::send}.encode();
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags =
      unsigned{IBV_SEND_SIGNALED} | (inline_bytes_ >= control_message_bytes ? unsigned{IBV_SEND_INLINE} : 0u);
  ibv_send_wr* bad = nullptr;
  if (const int failed = ibv_post_send(id_->qp, &wr, &bad); failed != 0) {
    end(Errc::device_error,
        "the device refused a control message: " + std::generic_category().message(failed));
    return;
  }
  send_queue_.posted(0, true);
  engine_.kick();
}

void Connection::on_completion(const ibv_wc& completion) {
  if (state_ == State::ended) return;
  if (completion.status != IBV_WC_SUCCESS) return on_failed(completion);
  if (WorkId::decode(completion.wr_id).kind == WorkKind::send) return on_send_done();
  on_receive(completion);
}

void Connection::on_send_done() {
  if (!send_queue_.completed())
    return end(Errc::device_error, "the device completed a send that was never posted");
  let_go_of_owners();
  if (state_ == State::closing) return try_hang_up();
  announce_if_due();
  if (wants_writable_ || write_op_) mark_dirty();
}

void Connection::let_go_of_owners() {
  while (!kept_.empty() && kept_.front().until <= send_queue_.done()) kept_.pop_front();
}

void Connection::on_receive(const ibv_wc& completion) {
  // An RC queue completes receives in the order of posting.
  const std::uint32_t slot = next_receive_;
  next_receive_ = (next_receive_ + 1) % settings_.receive_depth;
  ++used_receives_;
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    const std::uint32_t bytes = ntohl(completion.imm_data);
    ++stats_.immediates;
    // The immediate holds the peer's count; byte_len covers only its last write.
    if (!window_.deliver(bytes))
      return end(Errc::immediate_beyond_buffer,
                 "peer claims " + std::to_string(bytes) + " more bytes than it was given room for");
    stats_.bytes_received += bytes;
    // The reader runs after the whole batch of completions; prefetch so that the bytes are here by then.
    if (const std::span<const std::byte> unread = readable(); !unread.empty())
      __builtin_prefetch(unread.data());
    fresh_input_ = true;
    announce_if_due();
    mark_dirty();
  } else {
    // Copy first: the device may write into the slot again.
    ControlBytes copy{};
    const std::size_t length = std::min<std::size_t>(completion.byte_len, copy.size());
    std::copy_n(receive_slot(slot), length, copy.begin());
    on_control(std::span(copy).first(length));
  }
  replenish();
}

void Connection::on_control(std::span<const std::byte> bytes) {
  const std::expected<ControlMessage, Errc> message = parse(bytes);
  if (!message)
    return end(message.error(),
               "peer sent a bad control message of " + std::to_string(bytes.size()) + " bytes");
  if (const auto* announced = std::get_if<RegisterXferMemory>(&*message)) {
    announced_to_us_ = true;
    peer_window_.open(*announced);
    if (wants_writable_ || write_op_) mark_dirty();
    return;
  }
  if (std::holds_alternative<Keepalive>(*message)) return;
  if (side_ == Side::client)
    return end(Errc::unexpected_message, "the server sent a message that only it may receive");
  if (const auto* wanted = std::get_if<SetClientFeature>(&*message)) {
    if (wanted->features != 0) end(Errc::unknown_feature, "peer sets feature bits that nobody defined");
    return;  // never answered
  }
  const std::uint16_t select = std::get<GetServerFeature>(*message).select;
  if (!send_queue_.room_for_control())
    return end(Errc::control_flood, "peer asks faster than it takes answers");
  send_control(GetServerFeature{.select = select, .features = 0});
}

void Connection::replenish() {
  if (state_ == State::ended) return;
  // In batches, with one doorbell for many. A sixteenth keeps nearly the whole depth posted.
  const std::uint32_t batch = std::clamp<std::uint32_t>(settings_.receive_depth / 16u, 1, max_receive_batch);
  if (used_receives_ < batch) return;
  if (Result<void> posted = post_receives(used_receives_); !posted)
    return end(posted.error().code, std::move(posted.error().what));
  used_receives_ = 0;
}

// Posts the next `count` slots in order, in chains of at most max_receive_batch.
Result<void> Connection::post_receives(std::uint32_t count) {
  std::array<ibv_recv_wr, max_receive_batch> wrs;
  std::array<ibv_sge, max_receive_batch> pieces;
  while (count > 0) {
    const std::uint32_t batch = std::min<std::uint32_t>(count, max_receive_batch);
    for (std::uint32_t i = 0; i < batch; ++i) {
      pieces[i] = {reinterpret_cast<std::uintptr_t>(receive_slot(next_post_)), control_message_bytes,
                   control_lkey_};
      wrs[i] = {WorkId{tag_, WorkKind::receive}.encode(), i + 1 < batch ? &wrs[i + 1] : nullptr, &pieces[i],
                1};
      next_post_ = (next_post_ + 1) % settings_.receive_depth;
    }
    ibv_recv_wr* bad = nullptr;
    if (const int failed = ibv_post_recv(id_->qp, wrs.data(), &bad); failed != 0)
      return fail_os(Errc::device_error, "the device refused receives", failed);
    count -= batch;
  }
  return {};
}

std::byte* Connection::receive_slot(std::uint32_t index) const {
  return control_.bytes().data() + index * control_message_bytes;
}

}  // namespace weir::rdma

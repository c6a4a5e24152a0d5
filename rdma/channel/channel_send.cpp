// The sending half of a channel: puts messages into frames, which channel_post.cpp posts to the device.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "rdma/channel/channel_connection.hpp"

namespace weir::rdma {

using channel_wire::record_header_bytes;

namespace {

using Pieces = std::span<const asio::const_buffer>;

std::size_t size_of(Pieces pieces) {
  std::size_t bytes = 0;
  for (const asio::const_buffer& piece : pieces) bytes += piece.size();
  return bytes;
}

channel_wire::Offer whole_offer(std::size_t bytes) {
  return {.length = static_cast<std::uint32_t>(bytes), .total = static_cast<std::uint32_t>(bytes)};
}

// Copies `bytes` of the pieces, starting at `offset`.
void gather(Pieces pieces, std::size_t offset, std::size_t bytes, std::byte* into) {
  for (const asio::const_buffer& piece : pieces) {
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const std::size_t take = std::min(piece.size() - offset, bytes);
    if (take > 0) std::memcpy(into, static_cast<const std::byte*>(piece.data()) + offset, take);
    into += take;
    bytes -= take;
    offset = 0;
    if (bytes == 0) return;
  }
}

}  // namespace

bool ChannelConnection::fits_frame(std::size_t bytes) const {
  return bytes + record_header_bytes <= frame_bytes_;
}

std::uint32_t ChannelConnection::offers_allowed() const {
  return std::min(settings_.rendezvous_depth, peer_.rendezvous_depth);
}

bool ChannelConnection::by_rendezvous(std::size_t bytes) const {
  return settings_.rendezvous_bytes > 0 && offers_allowed() > 0 && bytes >= settings_.rendezvous_bytes &&
         bytes > settings_.inline_bytes;
}

channel_wire::Offer ChannelConnection::next_part(std::size_t total, std::size_t sent) const {
  const std::size_t left = total - sent;
  const std::size_t length =
      settings_.piece_bytes == 0 ? left : std::min<std::size_t>(left, settings_.piece_bytes);
  return {.length = static_cast<std::uint32_t>(length),
          .total = static_cast<std::uint32_t>(total),
          .offset = static_cast<std::uint32_t>(sent)};
}

bool ChannelConnection::can_post() const {
  return (state_ == State::established || state_ == State::closing) && credits_.left() > 0 &&
         ring_.outstanding() < 2u * settings_.send_blocks;
}

bool ChannelConnection::stalled() {
  ++counters_.stalls;
  wants_writable_ = true;
  return false;
}

BlockRef ChannelConnection::stage() {
  if (staged_ >= settings_.send_blocks) return {};
  Result<BlockRef> block = store_->frame(BlockUse::sending);
  if (!block) return {};
  ++staged_;
  return std::move(*block);
}

// Adds a record of `bytes`, which `write` fills in, to the open frame or to one that is sent at once.
// False: there is no room now.
template <class Write>
bool ChannelConnection::place(std::size_t bytes, Write write) {
  if (open_.block) {
    const std::size_t at = channel_wire::padded(open_.used);
    if (at + bytes <= frame_bytes_) {
      std::memset(open_.block->bytes().data() + open_.used, 0, at - open_.used);
      write(open_.block->bytes().data() + at);
      open_.used = at + bytes;
      ++counters_.merged_messages;
      return true;
    }
    if (!can_post()) return stalled();
    // The last frame of a burst wakes the peer: this is the last one unless we get another block.
    BlockRef next = corks_ > 0 ? stage() : BlockRef();
    const bool more = static_cast<bool>(next);
    flush_open(!more);
    if (state_ == State::ended) return false;
    if (more) {
      write(next->bytes().data());
      open_ = {std::move(next), bytes};
      return true;
    }
  }
  if (can_post() && (corks_ == 0 || !settings_.merge)) {
    if (bytes <= inline_bytes_) {
      std::array<std::byte, channel_wire::max_inline_bytes> record;
      write(record.data());
      return post_frame(std::span(record).first(bytes), Posted{}, 0, true);
    }
    BlockRef block = stage();
    if (!block) return stalled();
    write(block->bytes().data());
    const std::span<const std::byte> frame = block->bytes().first(bytes);
    const std::uint32_t lkey = block->lkey;
    return post_frame(frame, Posted{.block = std::move(block), .staged = true, .fetch = false}, lkey, true);
  }
  if (!settings_.merge) return stalled();
  BlockRef block = stage();
  if (!block) return stalled();
  write(block->bytes().data());
  open_ = {std::move(block), bytes};
  return true;
}

bool ChannelConnection::place_message(Pieces message, std::size_t bytes) {
  const bool placed = place(record_header_bytes + bytes, [&](std::byte* at) {
    channel_wire::put_message_header(at, static_cast<std::uint32_t>(bytes));
    gather(message, 0, bytes, at + record_header_bytes);
  });
  if (placed) counters_.copied_bytes += bytes;
  return placed;
}

// Sends the buffer in place: the header goes into the room before the message.
bool ChannelConnection::place_buffer(Buffer& buffer) {
  if (open_.block && !flush_open(true)) return stalled();
  if (!can_post()) return stalled();
  const std::span<std::byte> bytes = buffer.bytes();
  std::byte* header = bytes.data() - record_header_bytes;
  channel_wire::put_message_header(header, static_cast<std::uint32_t>(bytes.size()));
  const std::uint32_t lkey = buffer.block_->lkey;
  ++counters_.zero_copy_sends;
  return post_frame(std::span(header, record_header_bytes + bytes.size()),
                    Posted{.block = std::move(buffer.block_), .staged = false, .fetch = false}, lkey, true);
}

// The block stays ours, unchanged, until the peer says that it has fetched it. The offer is sent at once,
// even when corked, so that the peer fetches while we prepare the next ones.
bool ChannelConnection::place_offer(BlockRef& block, channel_wire::Offer offer) {
  if (offered_.size() >= offers_allowed()) return stalled();
  const Result<PeerRight*> made = store_->make_readable(*block, offer.length);
  if (!made) {
    end(made.error().code, made.error().what);
    return false;
  }
  PeerRight& right = **made;
  if (right.unbound()) {
    if (ring_.room() == 0) return stalled();
    ibv_send_wr bind = right.bind();
    if (!post(bind, Posted{.block = block.share(), .staged = false, .fetch = false}, true)) return false;
  }
  offer.address = right.address();
  offer.rkey = right.rkey();
  if (!place(channel_wire::offer_record_bytes(offer),
             [&](std::byte* at) { channel_wire::put_offer(at, offer); }))
    return false;
  offered_.push_back(std::move(block));
  ++counters_.offers;
  counters_.offered_parts += offer.whole() ? 0 : 1;
  flush_open(true);
  return state_ != State::ended;
}

// Copies the bytes of `offer` out of the pieces, starting at `from`.
bool ChannelConnection::offer_copy(Pieces pieces, std::size_t from, channel_wire::Offer offer) {
  if (offered_.size() >= offers_allowed() || (!can_post() && !settings_.merge)) return stalled();
  Result<BlockRef> block = store_->large(offer.length, BlockUse::sending);
  if (!block) return stalled();
  gather(pieces, from, offer.length, (*block)->bytes().data());
  if (!place_offer(*block, offer)) return false;
  counters_.copied_bytes += offer.length;
  return true;
}

bool ChannelConnection::offer_parts(Outbound& message, Pieces pieces, std::size_t bytes) {
  while (message.sent < bytes) {
    const channel_wire::Offer offer = next_part(bytes, message.sent);
    if (!offer_copy(pieces, message.sent, offer)) return false;
    message.sent += offer.length;
  }
  return true;
}

// `rest` is all that is left of a message already begun, or a new message.
std::size_t ChannelConnection::send_some(asio::const_buffer rest) {
  const Pieces pieces(&rest, 1);
  if (state_ != State::established) return 0;
  if (begun_total_ == 0) {
    if (!by_rendezvous(rest.size())) return send(pieces) == Sent::taken ? rest.size() : 0;
    if (rest.size() > peer_.max_message) return 0;
    if (!waiting_.empty()) return stalled(), 0;
    begun_total_ = rest.size();
    begun_sent_ = 0;
  }
  std::size_t taken = 0;
  while (begun_sent_ < begun_total_) {
    const channel_wire::Offer offer = next_part(begun_total_, begun_sent_);
    if (!offer_copy(pieces, taken, offer)) return taken;
    begun_sent_ += offer.length;
    taken += offer.length;
  }
  ++counters_.messages_sent;
  counters_.bytes_sent += begun_total_;
  begun_total_ = 0;
  if (!waiting_.empty()) mark_dirty();
  return taken;
}

// Sends one frame after the other, copying each while the previous one is on its way.
bool ChannelConnection::send_parts(Outbound& message, Pieces pieces, std::size_t bytes) {
  while (message.sent < bytes) {
    if (open_.block && !flush_open(true)) return stalled();
    if (!can_post()) return stalled();
    BlockRef block = stage();
    if (!block) return stalled();
    const bool first = message.sent == 0;
    const std::size_t header = first ? channel_wire::first_header_bytes : record_header_bytes;
    const std::size_t take = std::min(bytes - message.sent, frame_bytes_ - header);
    std::byte* at = block->bytes().data();
    if (first)
      channel_wire::put_first_header(at, static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(take));
    else
      channel_wire::put_more_header(at, static_cast<std::uint32_t>(take));
    gather(pieces, message.sent, take, at + header);
    const std::uint32_t lkey = block->lkey;
    const bool last = message.sent + take == bytes;
    if (!post_frame(std::span<const std::byte>(at, header + take),
                    Posted{.block = std::move(block), .staged = true, .fetch = false}, lkey, last))
      return false;
    message.sent += take;
    counters_.copied_bytes += take;
  }
  ++counters_.split_messages;
  return true;
}

// Sends as much of a message as there is room for. True: all of it has been sent.
bool ChannelConnection::advance(Outbound& message) {
  const std::span<std::byte> own = message.buffer.bytes();
  const asio::const_buffer whole(own.data(), own.size());
  const Pieces pieces = message.buffer ? Pieces(&whole, 1) : message.op->pieces();
  const std::size_t bytes = size_of(pieces);
  bool done = false;
  if (message.buffer && by_rendezvous(bytes) && message.buffer.offset_ == 0) {
    done = place_offer(message.buffer.block_, whole_offer(bytes));
    counters_.zero_copy_sends += done;
  } else if (by_rendezvous(bytes)) {
    done = offer_parts(message, pieces, bytes);
  } else if (!fits_frame(bytes)) {
    done = send_parts(message, pieces, bytes);
  } else if (message.buffer && message.buffer.offset_ >= record_header_bytes) {
    done = place_buffer(message.buffer);
  } else {
    done = place_message(pieces, bytes);
  }
  if (!done) return false;
  ++counters_.messages_sent;
  counters_.bytes_sent += bytes;
  return true;
}

ChannelConnection::Sent ChannelConnection::send(Pieces message) {
  if (state_ != State::established) return Sent::ended;
  const std::size_t bytes = size_of(message);
  if (bytes > peer_.max_message) return Sent::too_long;
  if (!waiting_.empty() || begun_total_ > 0) return stalled(), Sent::later;
  if (by_rendezvous(bytes) || fits_frame(bytes)) {
    const bool placed =
        by_rendezvous(bytes) ? offer_copy(message, 0, whole_offer(bytes)) : place_message(message, bytes);
    if (!placed) return state_ == State::ended ? Sent::ended : Sent::later;
    ++counters_.messages_sent;
    counters_.bytes_sent += bytes;
    return Sent::taken;
  }
  // Too long for one frame: copy the whole message, and send it as the window allows.
  Result<BlockRef> copy = store_->large(bytes, BlockUse::sending);
  if (!copy) return stalled(), Sent::later;
  gather(message, 0, bytes, (*copy)->bytes().data());
  waiting_.push_back({.op = nullptr, .buffer = Buffer(std::move(*copy), 0, bytes), .sent = 0});
  pump();
  return state_ == State::ended ? Sent::ended : Sent::taken;
}

ChannelConnection::Sent ChannelConnection::send_or_wait(Pieces message) {
  const std::size_t bytes = size_of(message);
  const bool in_parts = by_rendezvous(bytes) && settings_.piece_bytes > 0 && bytes > settings_.piece_bytes;
  return in_parts && state_ == State::established && bytes <= peer_.max_message ? Sent::later : send(message);
}

ChannelConnection::Sent ChannelConnection::send(Buffer& message) {
  if (state_ != State::established) return Sent::ended;
  if (!message || message.block_->store != store_.get()) return Sent::ended;
  if (!waiting_.empty() || begun_total_ > 0) return stalled(), Sent::later;
  waiting_.push_back({.op = nullptr, .buffer = std::move(message), .sent = 0});
  pump();
  return state_ == State::ended ? Sent::ended : Sent::taken;
}

void ChannelConnection::wait_send(SendOpPtr op, Buffer buffer) {
  waiting_.push_back({.op = std::move(op), .buffer = std::move(buffer), .sent = 0});
  mark_dirty();
}

// Sends waiting messages in order, as one burst.
void ChannelConnection::pump() {
  if (waiting_.empty() || begun_total_ > 0) {
    if (open_.block && corks_ == 0) flush_open(true);
    return;
  }
  ++corks_;
  while (!waiting_.empty() && advance(waiting_.front())) {
    Outbound sent = std::move(waiting_.front());
    waiting_.pop_front();
    // Posted, because the handler might end this channel.
    if (sent.op)
      asio::post(engine_.io(),
                 [op = std::move(sent.op)]() mutable { op.release()->complete(std::error_code()); });
  }
  uncork();
}

void ChannelConnection::uncork() {
  if (corks_ == 0) return;
  --corks_;
  if (corks_ == 0 && open_.block) flush_open(true);
}

// False: the frame must wait.
bool ChannelConnection::flush_open(bool last) {
  if (!open_.block) return true;
  if (!can_post()) return false;
  OpenFrame frame = std::exchange(open_, OpenFrame{});
  const std::span<const std::byte> bytes = frame.block->bytes().first(frame.used);
  const std::uint32_t lkey = frame.block->lkey;
  return post_frame(bytes, Posted{.block = std::move(frame.block), .staged = true, .fetch = false}, lkey,
                    last);
}

Buffer ChannelConnection::share(const Message& message) {
  if (!message || message.block_->store != store_.get() || message.data() != message.block_->bytes().data())
    return {};
  store_->set_use(*message.block_, BlockUse::sending);
  return Buffer(message.block_.share(), 0, message.size());
}

Buffer ChannelConnection::share(const Buffer& buffer, std::size_t bytes) {
  if (!buffer || buffer.block_->store != store_.get() || bytes > buffer.size()) return {};
  // The peer may still read through the current registration, so we must not replace it by a longer one.
  if (buffer.block_->holders > 1 && buffer.block_->readable_bytes < bytes) return {};
  return Buffer(buffer.block_.share(), buffer.offset_, bytes);
}

Result<Buffer> ChannelConnection::allocate(std::size_t bytes) {
  if (state_ != State::established) return fail(Errc::closed, "the channel is not connected");
  if (bytes > peer_.max_message)
    return fail(Errc::message_too_long, "a message of " + std::to_string(bytes) + " bytes; the peer takes " +
                                            std::to_string(peer_.max_message));
  const std::size_t offset = fits_frame(bytes) ? record_header_bytes : 0;
  Result<BlockRef> block = store_->large(bytes + offset, BlockUse::sending);
  if (!block) return std::unexpected(block.error());
  return Buffer(std::move(*block), offset, bytes);
}

Buffer ChannelConnection::allocate_spare(std::size_t bytes) {
  if (state_ != State::established || !by_rendezvous(bytes) || !store_->has_plenty()) return {};
  Result<Buffer> buffer = allocate(bytes);
  return buffer ? std::move(*buffer) : Buffer();
}

}  // namespace weir::rdma

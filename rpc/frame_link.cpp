#include "rpc/frame_link.hpp"

#include <array>
#include <asio/post.hpp>

#include "rpc/stream_channel.hpp"

namespace weir::rpc {

FrameLink::~FrameLink() { transport_->close(); }

void FrameLink::close() {
  if (closed_) return;
  closed_ = true;
  out_.clear();
  transport_->close();
}

std::size_t FrameLink::begin_frame() {
  const std::size_t begin = encoded().size();
  encoded().grow(frame_header_bytes);
  return begin;
}

void FrameLink::announce_compression() {
  announced_ = true;
  FrameHeader settings;
  settings.kind = FrameKind::settings;
  settings.compressions = compression_.with != Compression::none ? all_compressions : 0;
  send(settings);
}

// An end that takes nothing sends nothing compressed either: it was not asked to.
void FrameLink::on_settings(const FrameHeader& header) {
  if (!announced_) announce_compression();
  if (compression_.with != Compression::none && (header.compressions & bit_of(compression_.with)) != 0)
    pack_from_ = compression_.from_bytes;
}

void FrameLink::pack(std::size_t begin, FrameHeader& header) {
  const bool compressible =
      header.kind == FrameKind::request || header.kind == FrameKind::reply || header.kind == FrameKind::item;
  const std::size_t before = body_bytes(begin);
  if (!compressible || !compress(compression_.with, encoded().span().last(before), packed_)) return;
  encoded().truncate(begin + frame_header_bytes);
  encoded().append(packed_.span());
  header.flags |= FrameFlag::compressed;
  ++stats_.compressed_sent.bodies;
  stats_.compressed_sent.bytes_before += before;
  stats_.compressed_sent.bytes_after += packed_.size();
  packed_.clear();
  packed_.shrink(keep_unpacked_bytes);
}

// False: it cannot be, and the link has ended.
bool FrameLink::unpack(Frame& frame) {
  const std::uint32_t taken = announced_ && compression_.with != Compression::none ? all_compressions : 0;
  if (Result<void> plain = decompress(frame.body, taken, frame_limits_.body_bytes, unpacked_); !plain) {
    check(plain);
    return false;
  }
  ++stats_.compressed_received.bodies;
  stats_.compressed_received.bytes_before += unpacked_.size();
  stats_.compressed_received.bytes_after += frame.body.size();
  frame.body = unpacked_.span();
  return true;
}

void FrameLink::end_frame(std::size_t begin, FrameHeader header, Buffer attachment) {
  if (body_bytes(begin) >= pack_from_) pack(begin, header);
  header.body_bytes = static_cast<std::uint32_t>(body_bytes(begin));
  header.attachment_bytes = static_cast<std::uint32_t>(attachment.size());
  encode(header, encoded().data() + begin);
  if (header.body_bytes >= large_body_bytes) {
    out_.cut(begin);
    out_.cut(encoded().size());
  }
  out_.attach(std::move(attachment), header.id);
  ++stats_.frames_sent;
  flush_soon();
  if (out_.bytes() >= write_early_bytes) write_out();
}

void FrameLink::send(const FrameHeader& header) {
  if (closed_) return;
  end_frame(begin_frame(), header);
}

// In a round the round's end flushes; outside, whatever else runs now may add to the same write.
void FrameLink::flush_soon() {
  if (in_round_ || flush_posted_ || blocked_ || closed_) return;
  flush_posted_ = true;
  asio::post(io_, [self = shared_from_this()] {
    self->flush_posted_ = false;
    self->flush();
  });
}

// Nobody hears of it before flush(): whoever ends a frame is in the middle of something.
void FrameLink::write_out() {
  std::array<asio::const_buffer, 64> pieces;
  while (!closed_ && !blocked_ && !out_.empty()) {
    const std::size_t count = out_.gather(pieces);
    std::size_t offered = 0;
    for (std::size_t i = 0; i < count; ++i) offered += pieces[i].size();
    const std::size_t taken = transport_->write(std::span(pieces).first(count));
    ++stats_.writes;
    if (closed_) return;
    blocked_ = taken < offered;
    progress_ |= taken > 0;
    out_.consume(taken);
  }
}

void FrameLink::flush() {
  write_out();
  if (closed_ || !std::exchange(progress_, false)) return;
  if (!starved_.empty()) wake_starved();
  on_progress();
}

void FrameLink::wake_starved() {
  for (StreamChannel* stream : std::exchange(starved_, {})) stream->on_link_progress();
}

void FrameLink::check(const Result<void>& read) {
  if (read || closed_) return;
  on_nonsense(read.error());
  if (closed_) return;
  flush();
  ended(read.error());
}

void FrameLink::filled(std::size_t bytes) {
  const auto self = shared_from_this();
  in_round_ = true;
  check(reader_.filled(bytes, *this));
}

bool FrameLink::keep(Buffer& bytes) {
  const auto self = shared_from_this();
  in_round_ = true;
  return reader_.keep(bytes, *this);
}

void FrameLink::received(std::span<const std::byte> bytes) {
  const auto self = shared_from_this();
  in_round_ = true;
  check(reader_.feed(bytes, *this));
}

void FrameLink::round_ended() {
  const auto self = shared_from_this();
  ++stats_.rounds;
  on_round_end();
  in_round_ = false;
  flush();
}

void FrameLink::writable() {
  const auto self = shared_from_this();
  blocked_ = false;
  flush();
}

void FrameLink::ended(Error cause) {
  if (closed_) return;
  const auto self = shared_from_this();
  close();
  on_end(cause);
}

bool FrameLink::on_frame(Frame& frame) {
  ++stats_.frames_received;
  if (frame.header.kind == FrameKind::ping) {
    FrameHeader pong;
    pong.kind = FrameKind::pong;
    pong.id = frame.header.id;
    send(pong);
    return !closed_;
  }
  if (frame.header.kind == FrameKind::settings) {
    on_settings(frame.header);
    return !closed_;
  }
  if ((frame.header.flags & FrameFlag::compressed) == 0) return on_arrival(frame) && !closed_;
  if (!unpack(frame)) return false;
  const bool goes_on = on_arrival(frame) && !closed_;
  unpacked_.clear();
  unpacked_.shrink(keep_unpacked_bytes);
  return goes_on;
}

}  // namespace weir::rpc

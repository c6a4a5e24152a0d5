#include "rpc/link/frame_link.hpp"

#include <array>
#include <asio/post.hpp>
#include <new>

namespace weir::rpc {

FrameLink::~FrameLink() { transport_->close(); }

void FrameLink::close() {
  if (closed_ && !ending_) return;
  closed_ = true;
  ending_.reset();
  out_.clear();
  transport_->close();
}

void FrameLink::close_gracefully(const Error& cause) {
  if (closed_) return;
  const auto self = shared_from_this();
  write_out();
  if (end_limits_.linger.count() <= 0) return ended(cause);
  closed_ = true;
  ending_ = std::make_unique<Ending>(
      Ending{GracefulClose(end_limits_, std::chrono::steady_clock::now()), asio::steady_timer(io_)});
  ending_->timer.expires_at(ending_->end.until());
  ending_->timer.async_wait([weak = weak_from_this()](const std::error_code& cancelled) {
    const auto link = weak.lock();
    if (!cancelled && link && link->ending_)
      link->ending_on(link->ending_->end.on_time(std::chrono::steady_clock::now()));
  });
  transport_->read_on(true);
  on_end(cause);
  if (ending_) ending_on(ending_->end.on_written(out_.empty()));
}

void FrameLink::ending_on(GracefulClose::Next next) {
  if (next == GracefulClose::Next::wait) return;
  if (next == GracefulClose::Next::end_output && !transport_->end_output()) return;
  const auto self = shared_from_this();
  close();
  on_gone();
}

void FrameLink::say_hello() {
  announced_ = true;
  FrameHeader settings;
  settings.kind = FrameKind::settings;
  settings.id = word_of(own_hello);
  settings.compressions = compression_.with != Compression::none ? all_compressions : 0;
  send(settings);
}

// An end that accepts no compression sends none either: it did not ask for any.
void FrameLink::on_settings(const FrameHeader& header) {
  if (!announced_) say_hello();
  peer_hello_ = hello_of(header.id);
  if (compression_.with != Compression::none && (header.compressions & bit_of(compression_.with)) != 0)
    open_.compress(compression_.with, compression_.from_bytes);
  on_hello();
}

CompressionCounts FrameLink::pack_body(std::size_t begin, FrameHeader& header) {
  const CompressionCounts counts = open_.pack(begin, header);
  if (counts.bodies == 0) return counts;
  stats_.compressed_sent += counts;
  on_packed(counts);
  return counts;
}

// False: the body is invalid, and the link has ended.
bool FrameLink::unpack(Frame& frame, Bytes& into) {
  const std::uint32_t taken = announced_ && compression_.with != Compression::none ? all_compressions : 0;
  Result<void> plain = decompress(frame.body, taken, frame_limits_.body_of(frame.header), into);
  if (!plain && plain.error().code == Errc::too_large && may_lift_limits(frame.header))
    plain = decompress(frame.body, taken, frame_limits_.body_of(frame.header), into);
  if (!plain) {
    if (plain.error().code == Errc::too_large) oversize_ = frame.header.id;
    check(plain);
    return false;
  }
  const CompressionCounts counts{1, into.size(), frame.body.size()};
  stats_.compressed_received += counts;
  on_unpacked(counts);
  frame.packed_bytes = frame.body.size();
  frame.body = into.span();
  return true;
}

void FrameLink::end_frame(std::size_t begin, FrameHeader header, Buffer attachment) {
  pack_body(begin, header);
  queue_frame(begin, header, std::move(attachment));
}

void FrameLink::queue_frame(std::size_t begin, FrameHeader header, Buffer attachment) {
  header.body_bytes = static_cast<std::uint32_t>(body_bytes(begin));
  header.attachment_bytes = static_cast<std::uint32_t>(attachment.size());
  encode(header, encoded().data() + begin);
  const bool refers = open_.refers();
  try {
    open_.place(begin, *transport_);
    out_.attach(std::move(attachment), header.id);
    ++stats_.frames_sent;
    flush_soon();
    if (out_.bytes() >= write_early_bytes) write_out();
    if (refers) out_.own_lent();
  } catch (...) {
    lose_frame();
    throw;
  }
}

// Part of a frame may have been sent, and there is no memory to keep the rest, which the
// application may overwrite.
void FrameLink::lose_frame() {
  open_.forget_references();
  if (closed_) return out_.clear();
  close();
  lost_a_frame_ = true;
  asio::post(io_, frame_loss_report_.serve([self = shared_from_this()] { self->report_frame_loss(); }));
}

// There may be no memory for a long message.
void FrameLink::report_frame_loss() {
  try {
    on_end(frame_loss());
  } catch (const std::bad_alloc&) {
    on_end({Errc::connection_lost, "no memory"});
  }
  on_gone();
}

Error FrameLink::frame_loss() {
  return {Errc::connection_lost, "there was no memory for a frame that was to be sent"};
}

void FrameLink::let_go_outgoing(std::uint64_t id) {
  try {
    out_.own(id);
  } catch (const std::bad_alloc&) {
    lose_frame();
  }
}

void FrameLink::send(const FrameHeader& header) {
  if (closed_) return;
  end_frame(begin_frame(), header);
}

// Within a round the round's end flushes; outside, other code that runs now may add to the same write.
void FrameLink::flush_soon() {
  if (in_round_ || flush_posted_ || blocked_ || closed_) return;
  flush_posted_ = true;
  asio::post(io_, [self = shared_from_this()] {
    self->flush_posted_ = false;
    self->flush();
  });
}

// Does not call the user before flush(): code that ends a frame is in the middle of its work.
void FrameLink::write_out() {
  std::array<asio::const_buffer, 64> pieces;
  while ((!closed_ || ending_) && !blocked_ && !out_.empty()) {
    const std::size_t count = out_.gather(pieces);
    std::size_t offered = 0;
    for (std::size_t i = 0; i < count; ++i) offered += pieces[i].size();
    const std::size_t taken = transport_->write(std::span(pieces).first(count));
    ++stats_.writes;
    if (closed_ && !ending_) return;
    blocked_ = taken < offered;
    progress_ |= taken > 0;
    stats_.bytes_sent += taken;
    out_.consume(taken);
  }
}

void FrameLink::flush() {
  write_out();
  if (ending_) return ending_on(ending_->end.on_written(out_.empty()));
  if (closed_ || !std::exchange(progress_, false)) return;
  if (!starved_.empty()) wake_starved();
  guard([this]() -> Result<void> {
    on_progress();
    return {};
  });
}

void FrameLink::wake_starved() {
  for (WaitsForRoom* stream : std::exchange(starved_, {})) stream->on_link_progress();
}

void FrameLink::check(const Result<void>& read) {
  if (read || closed_) return;
  on_nonsense(read.error());
  close_gracefully(read.error());
}

// A peer's input may end its own connection and no more, even if there is no memory for it. Any
// other exception drops the rest of the same read: the link ends, and the exception goes on to the
// caller of the io_context.
template <class Read>
void FrameLink::guard(Read read) {
  const auto self = shared_from_this();
  try {
    check(read());
  } catch (const std::bad_alloc&) {
    check(fail(Errc::too_large, "there is no memory for what the peer sends"));
  } catch (...) {
    ended({Errc::connection_lost, "an exception while what the peer sent was handled"});
    throw;
  }
}

std::span<std::byte> FrameLink::wanted() {
  std::span<std::byte> place;
  if (!ending_)
    guard([&]() -> Result<void> {
      place = reader_.wanted(*this);
      return {};
    });
  return place;
}

void FrameLink::filled(std::size_t bytes) {
  in_round_ = true;
  stats_.bytes_received += bytes;
  guard([&] { return reader_.filled(bytes, *this); });
}

bool FrameLink::keep(Buffer& bytes) {
  if (ending_) return false;
  in_round_ = true;
  bool kept = false;
  const std::size_t size = bytes.size();
  guard([&]() -> Result<void> {
    kept = reader_.keep(bytes, *this);
    return {};
  });
  if (kept) stats_.bytes_received += size;
  return kept;
}

void FrameLink::received(std::span<const std::byte> bytes) {
  if (ending_) return ending_on(ending_->end.on_dropped(bytes.size()));
  in_round_ = true;
  stats_.bytes_received += bytes.size();
  guard([&] { return reader_.feed(bytes, *this); });
}

void FrameLink::round_ended() {
  if (ending_) return reader_.forget();
  const auto self = shared_from_this();
  ++stats_.rounds;
  guard([this]() -> Result<void> {  // frames set aside may have their turn
    on_round_end();
    return {};
  });
  in_round_ = false;
  flush();
}

void FrameLink::writable() {
  const auto self = shared_from_this();
  blocked_ = false;
  flush();
}

void FrameLink::ended(Error cause) {
  if (closed_ && !ending_) return;
  const auto self = shared_from_this();
  const bool told = ending_ != nullptr;
  close();
  if (!told) on_end(cause);
  on_gone();
}

bool FrameLink::on_frame(Frame& frame) {
  ++stats_.frames_received;
  if (frame.header.kind == FrameKind::ping) {
    if (!answers_pings()) return true;
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
  return put_aside(frame) || deliver(frame);
}

bool FrameLink::deliver(Frame& frame) {
  if ((frame.header.flags & FrameFlag::compressed) == 0) return on_arrival(frame) && !closed_;
  // A receiver may pass on another frame before it has finished with this one.
  Bytes plain = std::move(unpacked_);
  const bool goes_on = unpack(frame, plain) && on_arrival(frame) && !closed_;
  plain.clear();
  plain.shrink(keep_unpacked_bytes);
  unpacked_ = std::move(plain);
  return goes_on;
}

}  // namespace weir::rpc

#include "rpc/link/stream_channel.hpp"

#include <algorithm>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <string>

namespace weir::rpc {

namespace {
using Length = std::uint32_t;
constexpr std::int64_t most_credit = std::int64_t{1} << 40;
constexpr std::size_t keep_inbox_bytes = 256 << 10;
}  // namespace

StreamChannel::StreamChannel(asio::io_context& io, const StreamLimits& limits)
    : limits_(limits), arrival_(io), room_(io), end_(io) {}

StreamChannel::~StreamChannel() {
  if (starved_ && link_ != nullptr) link_->forget(*this);
}

void StreamChannel::start(FrameLink& link, std::uint64_t id) {
  link_ = &link;
  id_ = id;
  if (limits_.window_bytes > stream_start_credit)
    consumed_ = static_cast<std::uint64_t>(limits_.window_bytes - stream_start_credit);
  grant();
}

void StreamChannel::finish(Error cause) {
  if (finished_) return;
  finished_ = std::move(cause);
  if (starved_ && link_ != nullptr) link_->forget(*this);
  starved_ = false;
  if (link_ != nullptr) link_->stream_bytes_ -= std::exchange(counted_, 0);
  link_ = nullptr;
  arrival_.ring();
  room_.ring();
  end_.ring();
}

bool StreamChannel::on_item(std::span<const std::byte> body) {
  if (finished_) return true;
  if (peer_ended_ || may_come_ <= 0) return false;
  const std::uint64_t cost = frame_header_bytes + body.size();
  may_come_ -= static_cast<std::int64_t>(cost);
  if (discarding_) {
    consumed(cost);
    return true;
  }
  const auto length = static_cast<Length>(body.size());
  std::memcpy(inbox_.grow(sizeof length), &length, sizeof length);
  inbox_.append(body);
  if (link_ != nullptr) {
    link_->stream_bytes_ += cost;
    counted_ += cost;
  }
  arrival_.ring();
  return true;
}

bool StreamChannel::on_credit(std::uint32_t bytes) {
  may_go_ += bytes;
  if (may_go_ > most_credit) return false;
  if (may_go_ > 0) room_.ring();
  return true;
}

bool StreamChannel::on_peer_end() {
  if (std::exchange(peer_ended_, true)) return false;
  arrival_.ring();
  return true;
}

void StreamChannel::on_link_progress() {
  starved_ = false;
  room_.ring();
}

std::span<const std::byte> StreamChannel::front() const {
  Length length = 0;
  std::memcpy(&length, inbox_.data() + inbox_at_, sizeof length);
  return inbox_.span().subspan(inbox_at_ + sizeof length, length);
}

void StreamChannel::pop() {
  const std::size_t body = front().size();
  inbox_at_ += sizeof(Length) + body;
  if (inbox_at_ == inbox_.size()) {
    inbox_.clear();
    inbox_.shrink(keep_inbox_bytes);
    inbox_at_ = 0;
  } else if (inbox_at_ >= inbox_.size() / 2 && inbox_at_ >= keep_inbox_bytes / 2) {
    inbox_.erase_front(inbox_at_);
    inbox_at_ = 0;
  }
  if (link_ != nullptr) {
    link_->stream_bytes_ -= frame_header_bytes + body;
    counted_ -= frame_header_bytes + body;
  }
  consumed(frame_header_bytes + body);
}

void StreamChannel::consumed(std::uint64_t bytes) {
  consumed_ += bytes;
  const auto window = std::max<std::uint64_t>(limits_.window_bytes, stream_start_credit);
  if (consumed_ >= window / 2) grant();
}

void StreamChannel::grant() {
  if (link_ == nullptr || peer_ended_ || consumed_ == 0) return;
  FrameHeader header;
  header.kind = FrameKind::credit;
  header.id = id_;
  header.credit = static_cast<std::uint32_t>(std::min<std::uint64_t>(consumed_, UINT32_MAX));
  consumed_ -= header.credit;
  may_come_ += header.credit;
  link_->send(header);
}

// Ends when the bell rings or the waiting coroutine is cancelled. Callers loop, so spurious rings are fine.
asio::awaitable<Result<void>> StreamChannel::wait(Bell& bell) {
  std::error_code ignored;
  ++bell.waiting;
  co_await bell.timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  --bell.waiting;
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none)
    co_return fail(Errc::cancelled, "whoever waited for the stream was cancelled");
  co_return Result<void>();
}

asio::awaitable<Result<void>> StreamChannel::wait_readable() {
  const auto self = shared_from_this();
  while (!readable()) {
    if (finished_) co_return std::unexpected(*finished_);
    if (peer_ended_) co_return fail(Errc::end_of_stream, "the peer has written all that it would");
    const Result<void> rung = co_await wait(arrival_);
    if (!rung && !finished_) co_return rung;
  }
  co_return Result<void>();
}

void StreamChannel::discard() {
  discarding_ = true;
  while (readable()) pop();
}

std::optional<Error> StreamChannel::write_error() const {
  if (finished_ && finished_->code == Errc::end_of_stream)
    return Error{Errc::end_of_stream,
                 "the function has returned and reads no more: finish() gives its result"};
  if (finished_) return finished_;
  if (writes_ended_) return Error{Errc::closed, "written to after close_write()"};
  return std::nullopt;
}

bool StreamChannel::has_room() {
  if (may_go_ <= 0) return false;
  if (link_->waiting_bytes() <= limits_.max_waiting_bytes) return true;
  if (!std::exchange(starved_, true)) link_->wake_when_emptier(*this);
  return false;
}

BodyPlace StreamChannel::begin_write(Bytes& held, BodySize expected) {
  if (write_error() || room_.waiting > 0 || !has_room()) return held;
  writing_ = link_->begin_frame(expected);
  return link_->body();
}

Result<void> StreamChannel::end_item(std::size_t begin) {
  const std::size_t bytes = link_->body_bytes(begin);
  if (bytes > limits_.item_bytes) {
    link_->drop_frame(begin);
    return fail(Errc::too_large, "an item of " + std::to_string(bytes) + " bytes, beyond the limit of " +
                                     std::to_string(limits_.item_bytes) +
                                     ": send it in parts, or raise stream_window_bytes at both ends");
  }
  FrameHeader header;
  header.kind = FrameKind::item;
  header.id = id_;
  may_go_ -= static_cast<std::int64_t>(frame_header_bytes + bytes);
  link_->end_frame(begin, header);
  return {};
}

namespace {
asio::awaitable<Result<void>> done(Result<void> result) { co_return result; }
}  // namespace

// A coroutine starts only when it is awaited, so end the frame here.
asio::awaitable<Result<void>> StreamChannel::end_write(Bytes held) {
  if (const auto begin = std::exchange(writing_, std::nullopt)) return done(end_item(*begin));
  return write_held(std::move(held));
}

void StreamChannel::drop_write() {
  if (const auto begin = std::exchange(writing_, std::nullopt)) link_->drop_frame(*begin);
}

asio::awaitable<Result<void>> StreamChannel::write_held(Bytes held) {
  const auto self = shared_from_this();
  for (;;) {
    if (auto error = write_error()) co_return std::unexpected(std::move(*error));
    if (has_room()) break;
    const Result<void> rung = co_await wait(room_);
    if (!rung && !finished_) co_return rung;
  }
  const std::size_t begin = link_->begin_frame(held.size());
  link_->encoded().append(held.span());
  co_return end_item(begin);
}

void StreamChannel::end_writes() {
  if (std::exchange(writes_ended_, true) || link_ == nullptr) return;
  FrameHeader header;
  header.kind = FrameKind::end;
  header.id = id_;
  link_->send(header);
}

asio::awaitable<Result<void>> StreamChannel::wait_finished() {
  const auto self = shared_from_this();
  while (!finished_) {
    const Result<void> rung = co_await wait(end_);
    if (!rung && !finished_) co_return rung;
  }
  co_return Result<void>();
}

}  // namespace weir::rpc

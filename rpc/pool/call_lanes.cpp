#include "rpc/pool/call_lanes.hpp"

#include <algorithm>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/redirect_error.hpp>

namespace weir::rpc {
namespace {

// Other lanes are waited for. An exception, want of memory say, is the caller's to see.
bool is_inconclusive(const Lane& lane) {
  return lane.ended && !lane.thrown && !lane.reply && worth_retrying(lane.reply.error().code, true);
}

}  // namespace

Lanes::~Lanes() {
  for (const LanePtr& one : lanes_)
    if (!one->ended) one->stop.emit(asio::cancellation_type::terminal);
}

void Lanes::begin() {
  auto lane = std::make_shared<Lane>();
  lane->options = options_;
  if (options_.reply_attachment != nullptr) lane->options.reply_attachment = &lane->attachment;
  if (options_.reply_metadata != nullptr) lane->options.reply_metadata = &lane->metadata;
  lane->tried = tried();
  lanes_.push_back(lane);
  const auto ended = [lane, changed = changed_](std::exception_ptr thrown, EncodedReply reply) {
    lane->thrown = std::move(thrown);
    lane->reply = std::move(reply);
    lane->ended = true;
    changed->cancel();
  };
  asio::co_spawn(io_, run_(lane), asio::bind_cancellation_slot(lane->stop.slot(), ended));
}

KnownServers::Tried Lanes::tried() const {
  KnownServers::Tried all;
  for (const LanePtr& one : lanes_) all.insert(all.end(), one->tried.begin(), one->tried.end());
  return all;
}

bool Lanes::all_sent() const {
  return std::ranges::none_of(lanes_, [](const LanePtr& one) { return one->tried.empty(); });
}

LanePtr Lanes::winner() const {
  for (const LanePtr& one : lanes_)
    if (one->ended && !is_inconclusive(*one)) return one;
  const bool all_ended = std::ranges::all_of(lanes_, [](const LanePtr& one) { return one->ended; });
  return all_ended && !lanes_.empty() ? lanes_.front() : nullptr;
}

bool Lanes::one_failed() const {
  return std::ranges::any_of(lanes_, [](const LanePtr& one) { return is_inconclusive(*one); });
}

asio::awaitable<bool> Lanes::wait(Clock::time_point when) {
  changed_->expires_at(when);
  std::error_code woken;
  co_await changed_->async_wait(asio::redirect_error(asio::use_awaitable, woken));
  co_return !woken;
}

void Lanes::hand_over(Lane& won) const {
  if (options_.reply_attachment != nullptr) *options_.reply_attachment = std::move(won.attachment);
  if (options_.reply_metadata != nullptr) *options_.reply_metadata = std::move(won.metadata);
}

}  // namespace weir::rpc

#include "rpc/server/held_requests.hpp"

#include <optional>
#include <utility>

namespace weir::rpc {

namespace {
// The overhead of the list and the table.
constexpr std::size_t upkeep_bytes = 72;

// The time left for the caller after `waited`; nullopt: it has given up. "For ever" (0) and the largest value
// of the field, which may mean a longer time, stay as they are.
std::optional<std::uint32_t> left_of(std::uint32_t timeout_us, std::chrono::steady_clock::duration waited) {
  if (timeout_us == 0 || timeout_us == UINT32_MAX) return timeout_us;
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(waited).count();
  if (us >= timeout_us) return std::nullopt;
  return timeout_us - static_cast<std::uint32_t>(us);
}
}  // namespace

HeldRequests::Held::Held(Frame& from)
    : header(from.header), body(Buffer::copy_of(from.body)), attachment(std::move(from.attachment)) {}

void HeldRequests::hold(Frame& frame, TimePoint now) {
  waiting_.push_back({Held(frame), now, {}});
  if (frame.header.kind == FrameKind::request) by_id_.emplace(frame.header.id, std::prev(waiting_.end()));
  bytes_ += upkeep_bytes + waiting_.back().request.bytes();
}

void HeldRequests::follow(Frame& frame) {
  std::vector<Held>& followers = by_id_.at(frame.header.id)->followers;
  bytes_ += followers.emplace_back(frame).bytes();
}

bool HeldRequests::drop(std::uint64_t id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  const List::iterator gone = found->second;
  forget(*gone);
  waiting_.erase(gone);
  return true;
}

HeldRequests::Waiting HeldRequests::take(TimePoint now) {
  forget(waiting_.front());
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  const auto left = left_of(first.request.header.timeout_us, now - first.since);
  first.late = !left;
  if (left) first.request.header.timeout_us = *left;
  return first;
}

void HeldRequests::clear() {
  by_id_.clear();
  waiting_.clear();
  bytes_ = 0;
}

// Call before `gone` is moved away.
void HeldRequests::forget(const Waiting& gone) {
  bytes_ -= upkeep_bytes + gone.request.bytes();
  for (const Held& each : gone.followers) bytes_ -= each.bytes();
  if (gone.request.header.kind == FrameKind::request) by_id_.erase(gone.request.header.id);
}

}  // namespace weir::rpc

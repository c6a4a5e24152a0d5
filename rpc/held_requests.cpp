#include "rpc/held_requests.hpp"

#include <utility>

namespace weir::rpc {

namespace {
// Of the list and the table.
constexpr std::size_t upkeep_bytes = 64;
}  // namespace

HeldRequests::Held::Held(Frame& from)
    : header(from.header), body(Buffer::copy_of(from.body)), attachment(std::move(from.attachment)) {}

void HeldRequests::hold(Frame& frame) {
  waiting_.push_back({Held(frame), {}});
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

HeldRequests::Waiting HeldRequests::take() {
  forget(waiting_.front());
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

void HeldRequests::clear() {
  by_id_.clear();
  waiting_.clear();
  bytes_ = 0;
}

// Before it is moved away.
void HeldRequests::forget(const Waiting& gone) {
  bytes_ -= upkeep_bytes + gone.request.bytes();
  for (const Held& each : gone.followers) bytes_ -= each.bytes();
  if (gone.request.header.kind == FrameKind::request) by_id_.erase(gone.request.header.id);
}

}  // namespace weir::rpc

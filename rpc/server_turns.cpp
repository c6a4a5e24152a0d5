// What a server hears at once of a client for which it is full, what waits for its turn, and when that comes.
#include <utility>

#include "rpc/server_connection.hpp"

namespace weir::rpc {

bool ServerConnection::put_aside(Frame& frame) {
  switch (frame.header.kind) {
    case FrameKind::request:
      if (held_.empty() && has_room()) return false;
      held_.contains(frame.header.id) ? refuse_twin(frame.header.id)
                                      : held_.hold(frame, Context::Clock::now());
      break;
    case FrameKind::credentials:
      if (held_.empty()) return false;
      held_.hold(frame, Context::Clock::now());
      break;
    case FrameKind::item:
    case FrameKind::end:
    case FrameKind::credit:
      if (!held_.contains(frame.header.id)) return false;
      held_.follow(frame);
      break;
    default:
      return false;
  }
  mind_reading();
  return true;
}

bool ServerConnection::has_room() const {
  if (draining_) return true;  // nothing runs any more: those that wait are told so now
  // Streams do not count: they need what comes to get on.
  return running_.size() - streams_ < limits_.most_in_flight &&
         running_bytes_ <= limits_.most_running_bytes && waiting_bytes() < limits_.most_waiting_bytes;
}

namespace {
struct SetForNow {
  explicit SetForNow(bool& which) : flag(which) { flag = true; }
  ~SetForNow() { flag = false; }
  bool& flag;
};
}  // namespace

void ServerConnection::mind_limits() {
  if (replaying_ || !is_open()) return;
  {
    const SetForNow replaying(replaying_);  // what is handled here ends up here again
    while (!held_.empty() && has_room() && is_open()) replay(held_.take(Context::Clock::now()));
  }
  mind_reading();
}

void ServerConnection::replay(HeldRequests::Waiting held) {
  if (held.late)
    return reply_error(held.request.header.id,
                       {Errc::deadline_exceeded, "the deadline passed before its turn; it did not run"});
  Frame request = held.request.frame();
  if (!hand_on(request)) return;
  for (HeldRequests::Held& follower : held.followers) {
    Frame frame = follower.frame();
    if (!hand_on(frame)) return;
  }
}

void ServerConnection::mind_reading() {
  const bool room = waiting_bytes() + held_.bytes() < limits_.most_waiting_bytes;
  if (room == reading_ || !is_open()) return;
  reading_ = room;
  read_on(room);
}

void ServerConnection::on_progress() { mind_limits(); }

}  // namespace weir::rpc

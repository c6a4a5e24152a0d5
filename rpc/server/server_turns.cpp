// What a full server answers at once, what it sets aside, and when the set-aside requests get their turn.
#include <utility>

#include "rpc/server/server_connection.hpp"

namespace weir::rpc {

namespace {
// Once a connection's requests cost this many bytes, it takes turns with others.
constexpr std::size_t expensive = 64 << 10;
}  // namespace

bool ServerConnection::put_aside(Frame& frame) {
  switch (frame.header.kind) {
    case FrameKind::request:
      if (held_.empty() && has_room() && !waits_for_turn(frame)) return false;
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
  update_reading();
  return true;
}

bool ServerConnection::has_room() const {
  if (draining_) return true;  // nothing runs any more: waiting requests are refused now
  // Streams do not count: they need further frames to make progress.
  return running_.size() - streams_ < limits_.max_in_flight &&
         running_bytes_ <= rules_->memory->share(limits_.max_running_bytes) &&
         waiting_bytes() < waiting_limit();
}

namespace {
struct SetForNow {
  explicit SetForNow(bool& which) : flag(which) { flag = true; }
  ~SetForNow() { flag = false; }
  bool& flag;
};
}  // namespace

void ServerConnection::apply_limits() {
  if (replaying_ || !is_open()) return;
  {
    const SetForNow replaying(replaying_);  // requests handled here come back here
    while (!held_.empty() && !in_turns_ && has_room() && is_open()) {
      replay(held_.take(Context::Clock::now()));
      if (!held_.empty() && turns_->is_over() && recent_cost_ >= expensive) queue_for_turn();
    }
  }
  update_reading();
  check_memory();
}

void ServerConnection::replay(HeldRequests::Waiting held) {
  if (held.late)
    return reply_error(held.request.header.id,
                       {Errc::deadline_exceeded, "the deadline passed before its turn; it did not run"});
  Frame request = held.request.frame();
  if (!deliver(request)) return;
  for (HeldRequests::Held& follower : held.followers) {
    Frame frame = follower.frame();
    if (!deliver(frame)) return;
  }
}

void ServerConnection::update_reading() {
  const bool room = waiting_bytes() + held_.bytes() < rules_->memory->share(waiting_limit());
  if (room == reading_ || !is_open()) return;
  reading_ = room;
  read_on(room);
}

void ServerConnection::on_progress() { apply_limits(); }

bool ServerConnection::waits_for_turn(const Frame& frame) {
  if (!turns_->is_over()) return false;
  const bool may_cost = frame.body.size() >= ThreadTurns::large_bytes || recent_cost_ >= expensive ||
                        (frame.header.flags & FrameFlag::compressed) != 0;
  if (may_cost) queue_for_turn();
  return may_cost;
}

void ServerConnection::queue_for_turn() {
  if (std::exchange(in_turns_, true)) return;
  turns_->wait(std::shared_ptr<ThreadTurns::Waiting>(shared_from_this(), this));
}

bool ServerConnection::take_turn() {
  if (!is_open() || held_.empty() || !has_room()) {
    in_turns_ = false;
    return false;
  }
  {
    const SetForNow replaying(replaying_);
    replay(held_.take(Context::Clock::now()));
  }
  in_turns_ = !held_.empty();
  const bool again = in_turns_;
  if (is_open()) apply_limits();
  flush();
  return again && is_open();
}

}  // namespace weir::rpc

// A connection's use of its server's memory and time, and when the connection is given up for it.
#include <algorithm>
#include <utility>

#include "rpc/server/running_call.hpp"
#include "rpc/server/server_connection.hpp"

namespace weir::rpc {

void ServerConnection::spend(std::size_t cost) {
  recent_cost_ += cost - recent_cost_ / 4;
  turns_->spend(cost);
}

void Context::arguments_read() {
  if (running_ != nullptr) running_->host->arguments_read(*running_);
}

void ServerConnection::arguments_read(RunningCall& call) {
  const std::size_t became = call.context.decoding_.used;
  if (const auto found = running_.find(call.id()); found != running_.end() && found->second == &call) {
    call.bytes += became;
    call_bytes_ += became;
  }
  spend(became);
}

std::size_t ServerConnection::waiting_limit() const {
  return known() ? limits_.max_waiting_bytes
                 : std::min<std::size_t>(limits_.max_waiting_bytes, limits_.max_unauthenticated_bytes);
}

std::size_t ServerConnection::held_bytes() const {
  return waiting_bytes() + held_.bytes() + call_bytes_ + stream_bytes() + (is_open() ? arrived_bytes() : 0);
}

// A connection that crosses a limit releases what it holds itself: waiting for others to do
// so could take for ever.
void ServerConnection::check_memory() {
  if (!is_open()) return;
  const std::size_t held = held_bytes();
  const bool fits = rules_->memory->settle(settled_, held);
  if (held > limits_.connection_bytes())
    return give_up(Errc::overloaded, "this connection takes more of the server's memory than one may");
  if (!fits)
    return give_up(Errc::overloaded, "the server has no memory left for what this client sends or asks for");
}

void ServerConnection::give_up(Errc code, const char* why) { dismiss({code, why}); }

void ServerConnection::look(PeerWatch::TimePoint now) {
  if (!is_open()) return;
  apply_limits();
  PeerSigns signs;
  signs.frames = stats().frames_received;
  signs.bytes_received = stats().bytes_received;
  signs.bytes_sent = stats().bytes_sent;
  signs.bytes_waiting = waiting_bytes();
  signs.frame_bytes = expected_bytes();
  signs.calls = requests_;
  signs.busy = !running_.empty();
  signs.reading = reading_;
  switch (watch_.look(now, signs)) {
    case PeerWatch::Next::wait:
      return;
    case PeerWatch::Next::ping: {
      FrameHeader ping;
      ping.kind = FrameKind::ping;
      return send(ping);
    }
    case PeerWatch::Next::first_frame_late:
      return give_up(Errc::deadline_exceeded, "no whole frame came in time: the connection ends");
    case PeerWatch::Next::frame_late:
      return give_up(Errc::deadline_exceeded, "a frame that was begun did not end in time");
    case PeerWatch::Next::silent:
      return give_up(Errc::deadline_exceeded, "the client did not answer a ping in time");
    case PeerWatch::Next::takes_nothing:
      return give_up(Errc::deadline_exceeded, "the client did not take what waits for it in time");
    case PeerWatch::Next::idle:
      return draining_ ? give_up(Errc::draining, "the connection was not used for long") : drain();
  }
}

}  // namespace weir::rpc

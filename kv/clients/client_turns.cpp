#include "kv/clients/client_turns.hpp"

#include <system_error>
#include <utility>

namespace weir::kv {

void ClientTurns::wait(std::uint64_t client) {
  waiting_.push_back(client);
  arm();
}

void ClientTurns::arm() {
  if (waiting_.empty() || std::exchange(armed_, true)) return;
  timer_.expires_after(std::chrono::milliseconds(0));
  timer_.async_wait([this](const std::error_code& cancelled) {
    if (cancelled) return;
    armed_ = false;
    const std::uint64_t client = waiting_.front();
    waiting_.pop_front();
    arm();
    go_on_(client);
  });
}

}  // namespace weir::kv

#include "kv/core/strangers.hpp"

#include <algorithm>

#include "transport/newcomers.hpp"

namespace weir::kv {

std::uint64_t Strangers::enter(Client& client, Lacks what, std::string_view peer, std::int64_t now_ms) {
  return those(what).enter(transport::source_of_peer(peer), {&client, now_ms});
}

std::int64_t Strangers::next_deadline_ms() const {
  const Shares::Place* const oldest = unknown_.oldest();
  if (oldest == nullptr || settings_.auth_timeout_s == 0) return 0;
  return oldest->second.since_ms + settings_.auth_timeout_s * 1000;
}

void Strangers::close_late(std::int64_t now_ms) {
  for (std::int64_t due; (due = next_deadline_ms()) != 0 && due <= now_ms;) {
    close_(*unknown_.oldest()->second.client,
           "no password for " + std::to_string(settings_.auth_timeout_s) + " s");
  }
}

// Many clients that know the password may connect at once, so each has a second to give it.
void Strangers::make_room(std::int64_t now_ms) {
  constexpr std::int64_t undisturbed_ms = 1000;
  const auto most = std::max<std::size_t>(static_cast<std::size_t>(settings_.maxclients) / 2, 1);
  while (unknown_.size() > most) {
    const Stranger& first = unknown_.first_to_leave()->second;
    if (now_ms - first.since_ms < undisturbed_ms) return;
    close_(*first.client, "others without the password came after it, and half of maxclients are such");
  }
}

bool Strangers::make_seat() {
  const Shares& those = unknown_.size() != 0 ? unknown_ : silent_;
  const Shares::Place* const first = those.first_to_leave();
  if (first == nullptr) return false;
  close_(*first->second.client, &those == &unknown_ ? "no password yet, and another client needs its seat"
                                                    : "no request yet, and another client needs its seat");
  return true;
}

}  // namespace weir::kv

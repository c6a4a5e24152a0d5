#include "kv/core/strangers.hpp"

#include <algorithm>

namespace weir::kv {

std::int64_t Strangers::next_deadline_ms() const {
  if (here_.empty() || settings_.auth_timeout_s == 0) return 0;
  return oldest().since_ms + settings_.auth_timeout_s * 1000;
}

void Strangers::close_late(std::int64_t now_ms) {
  for (std::int64_t due; (due = next_deadline_ms()) != 0 && due <= now_ms;)
    close_(*oldest().client, "no password for " + std::to_string(settings_.auth_timeout_s) + " s");
}

// Clients that hold seats without knowing the password must not keep out clients that know it. Many of those
// may connect at once, so each client has a second to give the password.
void Strangers::make_room(std::int64_t now_ms) {
  constexpr std::int64_t undisturbed_ms = 1000;
  const auto most = std::max<std::size_t>(static_cast<std::size_t>(settings_.maxclients) / 2, 1);
  while (here_.size() > most && now_ms - oldest().since_ms >= undisturbed_ms)
    close_(*oldest().client, "others without the password came after it, and half of maxclients are such");
}

}  // namespace weir::kv

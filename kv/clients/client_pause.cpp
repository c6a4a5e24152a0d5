#include "kv/clients/client_pause.hpp"

#include <algorithm>

namespace weir::kv {

bool ClientPause::begin(std::int64_t until_ms, Paused what, std::int64_t now_ms) {
  const bool under_way = now_ms < until_ms_;
  if (!under_way && until_ms <= now_ms) return false;
  what_ = under_way ? std::max(what_, what) : what;
  until_ms_ = std::max(until_ms_, until_ms);
  return true;
}

}  // namespace weir::kv

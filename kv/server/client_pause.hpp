// CLIENT PAUSE: which requests wait, and until when.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>

namespace weir::kv {

enum class Paused : std::uint8_t { nothing, writes, everything };

class ClientPause {
 public:
  // A pause in force is neither shortened nor relaxed by another one. A pause that has already expired may
  // still tighten the mode, and has no other effect. Returns false if nothing changed.
  bool begin(std::int64_t until_ms, Paused what, std::int64_t now_ms);
  void end() { *this = {}; }

  bool any() const { return what_ != Paused::nothing; }
  bool over(std::int64_t now_ms) const { return any() && now_ms >= until_ms_; }
  // 0: no pause.
  std::int64_t until_ms() const { return any() ? until_ms_ : 0; }
  // Whether a request must wait; `may_write`: it may change data.
  bool holds(bool may_write, std::int64_t now_ms) const {
    return any() && now_ms < until_ms_ && (may_write || what_ == Paused::everything);
  }

 private:
  Paused what_ = Paused::nothing;
  std::int64_t until_ms_ = 0;
};

}  // namespace weir::kv

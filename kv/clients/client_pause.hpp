// CLIENT PAUSE: which requests wait, and until when. And writes that the server holds back for a purpose of
// its own, until it lets them go.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>

namespace weir::kv {

enum class Paused : std::uint8_t { nothing, writes, everything };
// What the server holds clients' writes back for.
enum class HeldFor : std::uint8_t { shutdown, failover };

class ClientPause {
 public:
  // A pause in force is neither shortened nor relaxed by another one. A pause that has already expired may
  // still tighten the mode, and has no other effect. Returns false if nothing changed.
  bool begin(std::int64_t until_ms, Paused what, std::int64_t now_ms);
  void end() { what_ = Paused::nothing, until_ms_ = 0; }

  void hold_writes(HeldFor what) { held_for_ |= bit(what); }
  void let_writes(HeldFor what) { held_for_ &= static_cast<std::uint8_t>(~bit(what)); }
  bool holds_writes_for(HeldFor what) const { return (held_for_ & bit(what)) != 0; }

  // What is held back: by CLIENT PAUSE, or writes for a purpose of the server's own.
  Paused what() const { return lasts() || held_for_ == 0 ? what_ : Paused::writes; }
  bool any() const { return lasts() || held_for_ != 0; }
  bool over(std::int64_t now_ms) const { return lasts() && now_ms >= until_ms_; }
  // 0: no pause, or none that ends by itself.
  std::int64_t until_ms() const { return lasts() ? until_ms_ : 0; }
  // Whether a request must wait; `may_write`: it may change data.
  bool holds(bool may_write, std::int64_t now_ms) const {
    if (may_write && held_for_ != 0) return true;
    return lasts() && now_ms < until_ms_ && (may_write || what_ == Paused::everything);
  }

 private:
  static constexpr std::uint8_t bit(HeldFor what) {
    return static_cast<std::uint8_t>(1u << static_cast<unsigned>(what));
  }
  bool lasts() const { return what_ != Paused::nothing; }

  Paused what_ = Paused::nothing;
  std::int64_t until_ms_ = 0;
  std::uint8_t held_for_ = 0;
};

}  // namespace weir::kv

// How often a key is used, in the 32 bits a record has for it: Redis's LFU as its documentation describes it.
//
// The low byte is a logarithmic counter: each use increments it with a probability that falls as it grows, so
// a byte tells one use from a million. The other bits are the minute in which it was last looked at; for each
// decay_minutes since then it is one less, so what was popular once is forgotten.
//
// All of it is a function of the mark, the minute and a random number that the caller gives.
#pragma once

#include <cstdint>

namespace weir::kv {

struct FrequencyRules {
  std::uint32_t log_factor = 10;    // lfu-log-factor: how much use a high counter takes
  std::uint32_t decay_minutes = 1;  // lfu-decay-time; 0: never forgets
};

class UseFrequency {
 public:
  // A new key's counter: above that of keys nobody uses, so that it is not the first to go.
  static constexpr std::uint8_t initial = 5;
  static constexpr std::uint8_t most = 255;

  static std::uint32_t fresh(std::uint32_t minute) { return mark(initial, minute); }

  static std::uint32_t mark(std::uint8_t counter, std::uint32_t minute) { return minute << 8 | counter; }

  // The counter as it has decayed until `minute`.
  static std::uint8_t counter(std::uint32_t mark, std::uint32_t minute, const FrequencyRules& rules) {
    const std::uint32_t counter = mark & 0xff;
    if (rules.decay_minutes == 0) return static_cast<std::uint8_t>(counter);
    const std::uint32_t elapsed = (minute - (mark >> 8)) & minute_mask;
    const std::uint32_t periods = elapsed / rules.decay_minutes;
    return static_cast<std::uint8_t>(periods > counter ? 0 : counter - periods);
  }

  // The mark after one more use. `chance` is in [0, 1).
  static std::uint32_t used(std::uint32_t before, std::uint32_t minute, const FrequencyRules& rules,
                            double chance) {
    std::uint8_t now = counter(before, minute, rules);
    const double above = now > initial ? now - initial : 0;
    if (now < most && chance < 1.0 / (above * rules.log_factor + 1)) ++now;
    return mark(now, minute);
  }

 private:
  static constexpr std::uint32_t minute_mask = 0xffffff;
};

}  // namespace weir::kv

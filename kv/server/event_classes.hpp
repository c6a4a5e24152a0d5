// Which keyspace events are told: the letters of notify-keyspace-events. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::kv {

// The classes of events, a bit each.
class EventClasses {
 public:
  // As notify-keyspace-events has them: "KEA". Nothing if a letter is none of them.
  static std::optional<EventClasses> parse(std::string_view letters);
  std::string text() const;
  bool has(char letter) const;
  bool any() const { return bits_ != 0; }

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace weir::kv

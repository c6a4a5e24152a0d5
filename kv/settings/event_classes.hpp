// The classes of keyspace events that are published: the letters of notify-keyspace-events. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::kv {

// The classes of events, one bit each.
class EventClasses {
 public:
  // Parses the form of notify-keyspace-events: "KEA". nullopt: a letter is unknown.
  static std::optional<EventClasses> parse(std::string_view letters);
  std::string text() const;
  bool has(char letter) const;
  bool any() const { return bits_ != 0; }

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace weir::kv

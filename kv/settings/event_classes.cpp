#include "kv/settings/event_classes.hpp"

namespace weir::kv {

namespace {

// In printing order. A stands for all letters up to `d`.
constexpr std::string_view class_letters = "g$lshzxetdnKEm";
constexpr std::uint32_t all_classes = (1u << 10) - 1;
static_assert(class_letters[9] == 'd');

}  // namespace

std::optional<EventClasses> EventClasses::parse(std::string_view letters) {
  EventClasses classes;
  for (const char letter : letters) {
    const std::size_t at = class_letters.find(letter);
    if (letter != 'A' && at == std::string_view::npos) return std::nullopt;
    classes.bits_ |= letter == 'A' ? all_classes : 1u << at;
  }
  return classes;
}

bool EventClasses::has(char letter) const {
  const std::size_t at = class_letters.find(letter);
  return at != std::string_view::npos && (bits_ >> at & 1) != 0;
}

std::string EventClasses::text() const {
  const bool all = (bits_ & all_classes) == all_classes;
  std::string letters = all ? "A" : "";
  for (std::size_t i = 0; i < class_letters.size(); ++i) {
    const bool in_all = (all_classes >> i & 1) != 0;
    // Together with A, Redis does not print n.
    if (all && (in_all || class_letters[i] == 'n')) continue;
    if (has(class_letters[i])) letters += class_letters[i];
  }
  return letters;
}

}  // namespace weir::kv

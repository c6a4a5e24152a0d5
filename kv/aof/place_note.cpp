#include "kv/aof/place_note.hpp"

#include <limits>

#include "kv/text/number.hpp"

namespace weir::kv::aof {

namespace {
constexpr std::string_view head = "#weir-place-in-history: ";
}

std::string place_note(const repl::History& history) {
  return std::string(head) + history.id() + ' ' + std::to_string(history.end()) + ' ' +
         std::to_string(history.database) + "\r\n";
}

std::optional<repl::PlaceInHistory> read_place_note(std::string_view line) {
  if (!line.starts_with(head)) return std::nullopt;
  line.remove_prefix(head.size());
  const std::size_t first = line.find(' ');
  const std::size_t second = line.rfind(' ');
  if (first != repl::History::id_size || second == first) return std::nullopt;
  const auto position = parse_int(line.substr(first + 1, second - first - 1));
  const auto database = parse_int(line.substr(second + 1));
  if (!position || *position < 0 || !database || *database < -1) return std::nullopt;
  if (*database > std::numeric_limits<int>::max()) return std::nullopt;
  return repl::PlaceInHistory{std::string(line.substr(0, first)), *position, static_cast<int>(*database)};
}

}  // namespace weir::kv::aof

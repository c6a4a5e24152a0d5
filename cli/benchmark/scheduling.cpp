#include "cli/benchmark/scheduling.hpp"

#include <charconv>
#include <fstream>

namespace weir::benchmark {

std::optional<Scheduling> parse_schedstat(std::string_view text) {
  Scheduling found;
  for (auto* number : {&found.ran_ns, &found.waited_ns, &found.times}) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *number);
    if (problem != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  if (!text.empty() && text != "\n") return std::nullopt;
  return found;
}

std::optional<Scheduling> scheduling_of_this_thread(const std::string& file) {
  std::ifstream lines(file);
  std::string line;
  std::getline(lines, line);
  return parse_schedstat(line);
}

}  // namespace weir::benchmark

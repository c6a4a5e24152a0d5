#include "verbs/check/suppressions.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace weir::check {
namespace {

bool matches(const std::string& pattern, std::string_view text) {
  return ::fnmatch(pattern.c_str(), std::string(text).c_str(), 0) == 0;
}

}  // namespace

Suppressions::Suppressions(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r' || line.back() == '\t'))
      line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (line.starts_with('#') || colon == std::string_view::npos) continue;
    rows_.push_back({std::string(line.substr(0, colon)), std::string(line.substr(colon + 1))});
  }
}

bool Suppressions::cover(std::string_view rule, const std::vector<Frame>& frames) const {
  return std::ranges::any_of(rows_, [&](const Row& row) {
    return matches(row.rule, rule) && std::ranges::any_of(frames, [&](const Frame& frame) {
             const std::string_view file =
                 std::string_view(frame.where).substr(0, frame.where.find_last_of(":+"));
             return matches(row.pattern, frame.function) || matches(row.pattern, file) ||
                    matches(row.pattern, frame.where);
           });
  });
}

Suppressions suppressions_of(const std::string& file) {
  if (file.empty()) return {};
  std::FILE* const in = std::fopen(file.c_str(), "re");
  if (in == nullptr) {
    std::fprintf(stderr, "weir check: cannot read %s: %s; nothing is suppressed\n", file.c_str(),
                 std::strerror(errno));
    return {};
  }
  std::string text;
  char piece[4096];
  for (std::size_t got; (got = std::fread(piece, 1, sizeof piece, in)) != 0;) text.append(piece, got);
  std::fclose(in);
  return Suppressions(text);
}

}  // namespace weir::check

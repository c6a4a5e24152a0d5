// Findings that the user has looked at and does not want to see again: lines "RULE:PATTERN" of a file, where
// the pattern, with * and ?, is compared with the functions, files and modules of the finding's places.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "verbs/check/place.hpp"

namespace weir::check {

class Suppressions {
 public:
  Suppressions() = default;
  // Empty lines and those that begin with # say nothing.
  explicit Suppressions(std::string_view text);
  bool cover(std::string_view rule, const std::vector<Frame>& frames) const;

 private:
  struct Row {
    std::string rule, pattern;
  };
  std::vector<Row> rows_;
};

// The file's; complains on standard error and has none if it cannot be read.
Suppressions suppressions_of(const std::string& file);

}  // namespace weir::check

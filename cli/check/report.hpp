// The findings of weir-check, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "cli/check/checked_file.hpp"
#include "cli/check/file_set.hpp"

namespace weir::check {

// The result for a set of files.
struct CheckedSet {
  std::string manifest, wrong;  // as in FileSet
  std::vector<CheckedFile> files;

  bool whole() const;
  // Whether all files after that one are empty, so that the log ends with it.
  bool is_last(const CheckedFile& file) const;
};

std::string report_text(const CheckedSet& set);
std::string report_json(const std::vector<CheckedSet>& sets);

}  // namespace weir::check

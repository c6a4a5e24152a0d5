// The setting `save`: a snapshot is due after so many seconds if so many changes were made since the last.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

namespace weir::kv {

struct SavePoint {
  std::int64_t seconds;
  std::int64_t changes;
};

// Parses "3600 1 300 100", as one text or as separate words. The error is Redis's.
std::expected<std::vector<SavePoint>, std::string> read_save_points(std::span<const std::string> words);
std::string save_points_text(std::span<const SavePoint> points);

}  // namespace weir::kv

// A setting and its allowed range, for checking settings.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "rdma/error.hpp"

namespace weir::rdma {

struct SettingRange {
  const char* name;
  std::uint64_t value, least, most;
};

// Errc::bad_setting with the name and the range of the first setting that is out of range.
inline Result<void> check_ranges(std::span<const SettingRange> settings) {
  for (const SettingRange& setting : settings) {
    if (setting.value >= setting.least && setting.value <= setting.most) continue;
    return fail(Errc::bad_setting, std::string(setting.name) + " is " + std::to_string(setting.value) +
                                       ", allowed are " + std::to_string(setting.least) + " to " +
                                       std::to_string(setting.most));
  }
  return {};
}

}  // namespace weir::rdma

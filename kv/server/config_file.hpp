// Configuration files in redis.conf's form: lines of "NAME VALUE", comments, and "include PATH".
//
// Files are read through what the caller gives, so text that comes from elsewhere reads none. Files include
// others at most 16 deep.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kv/server/settings.hpp"

namespace weir::kv {

struct ConfigText {
  std::string file;  // its one name, so that a file that includes itself is recognised; empty: no file
  std::string text;
};
// The files that a path names, which may be a pattern that matches none. The error is a reason.
using ReadConfig =
    std::function<std::expected<std::vector<ConfigText>, std::string>(const std::string& path)>;

// Where something is wrong, and why.
struct ConfigError {
  std::string file;
  std::size_t line = 0;
  std::string text;
  std::string reason;
};

// A line "user NAME RULE...", without its first word. The error is a reason.
std::expected<void, std::string> add_user_line(Settings& settings, std::span<const std::string> words);

// Applies the lines in order, to the first wrong one; those before stay applied. Without `read` an include is
// refused.
std::expected<void, ConfigError> apply_config(Settings& settings, const ConfigText& config,
                                              const ReadConfig& read = {});
// The same, passing over wrong lines: all that is wrong, in the order in which it is read.
std::vector<ConfigError> apply_right_lines(Settings& settings, const ConfigText& config,
                                           const ReadConfig& read);

}  // namespace weir::kv

// Configuration files in redis.conf's form: lines of "NAME VALUE", comments, and "include PATH".
//
// Files are read through a function that the caller gives, so text from elsewhere can be kept from reading
// any. Includes nest at most 16 deep.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kv/settings/settings.hpp"

namespace weir::kv {

struct ConfigText {
  std::string file;  // its canonical name, which reveals a file that includes itself; empty: no file
  std::string text;
};
// The files that a path names. The path may be a pattern that matches none. The error is a reason.
using ReadConfig =
    std::function<std::expected<std::vector<ConfigText>, std::string>(const std::string& path)>;

// The place of an error, and its reason.
struct ConfigError {
  std::string file;
  std::size_t line = 0;
  std::string text;
  std::string reason;
};

// Adds a line "user NAME RULE..."; `words` begin at NAME. The error is a reason.
std::expected<void, std::string> add_user_line(Settings& settings, std::span<const std::string> words);

// Applies "loadmodule valkey-rdma.so bind=ADDRESS port=PORT", as Valkey's configuration files turn RDMA on:
// this server has that built in, and loads no other module. `words` begin at the file. The error is a reason.
std::expected<void, std::string> apply_module_line(Settings& settings, std::span<const std::string> words);

// Applies the lines in order, up to the first wrong one; the lines before it stay applied. Without
// `read` an include is an error.
std::expected<void, ConfigError> apply_config(Settings& settings, const ConfigText& config,
                                              const ReadConfig& read = {});
// Likewise, but skips wrong lines. Returns all errors, in reading order.
std::vector<ConfigError> apply_right_lines(Settings& settings, const ConfigText& config,
                                           const ReadConfig& read);

}  // namespace weir::kv

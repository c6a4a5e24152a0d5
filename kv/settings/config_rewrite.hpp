// CONFIG REWRITE: changes a configuration file's text so that it states the server's current settings.
//
// Lines that are still right stay as they are, and so do comments, blank lines and includes. A wrong line is
// replaced in place. A setting that no line states is added at the end if it differs from its default.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kv/settings/config_file.hpp"

namespace weir::kv {

// `users` holds the lines "user NAME RULE..." that replace those of the file; nullopt: they stay.
struct CurrentConfig {
  const Settings& settings;
  std::vector<std::string> users;
};
// `read` reads the included files, whose settings count as stated. A file that cannot be read does not count.
std::string rewritten_config(std::string_view text, const CurrentConfig& now, const ReadConfig& read);

}  // namespace weir::kv

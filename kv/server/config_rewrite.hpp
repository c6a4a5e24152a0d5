// CONFIG REWRITE: a configuration file's text, changed so that it says what the server's settings are now.
//
// Lines that still say so stay as they are, and so do comments, blank lines and includes. A line that does
// not is replaced where it stands; what no line says is added at the end, where it differs from the default.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kv/server/config_file.hpp"

namespace weir::kv {

// `users`: the lines "user NAME RULE..." that take the place of the file's; nothing: they stay.
struct CurrentConfig {
  const Settings& settings;
  std::vector<std::string> users;
};
// `read` reads what the file includes: what comes from there counts as said. What cannot be read does not.
std::string rewritten_config(std::string_view text, const CurrentConfig& now, const ReadConfig& read);

}  // namespace weir::kv

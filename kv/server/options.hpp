// The command line of weir-server: an optional configuration file, then --name value... as in the file.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "kv/server/config_file.hpp"
#include "kv/server/settings.hpp"

namespace weir::kv {

struct StartOptions {
  Settings settings;
  std::string config_file;  // absolute; "-" if it was read from standard input
  std::string answer;       // --help or --version: print this and end
  bool check = false;       // --check-config: say what is wrong and end
  // With `check`, all that is wrong with the words and in the files; the settings are those that are right.
  std::vector<std::string> wrong;
};

// The error is fit to show a user.
std::expected<StartOptions, std::string> parse_options(const std::vector<std::string>& arguments);

// A configuration file, and what "include PATTERN" names, seen from `folder`: a pattern may match nothing, a
// plain path may not. The errors are reasons.
std::expected<ConfigText, std::string> read_config(const std::string& path);
std::expected<std::vector<ConfigText>, std::string> read_included(const std::string& folder,
                                                                  const std::string& pattern);

}  // namespace weir::kv

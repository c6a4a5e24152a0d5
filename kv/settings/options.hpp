// The command line of weir-server: an optional configuration file, then --name value... as in that file.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "kv/settings/config_file.hpp"
#include "kv/settings/settings.hpp"

namespace weir::kv {

struct StartOptions {
  Settings settings;
  std::string config_file;  // absolute; "-": standard input
  std::string answer;       // --help or --version: print this and exit
  bool check = false;       // --check-config: report errors and exit
  // With `check`: all errors in the words and files. The settings are then those that were right.
  std::vector<std::string> wrong;
};

// The error is for a user to read.
std::expected<StartOptions, std::string> parse_options(const std::vector<std::string>& arguments);

// Reads a configuration file, and the files that "include PATTERN" names, relative to `folder`. A pattern may
// match nothing, but a plain path must exist. The errors are reasons.
std::expected<ConfigText, std::string> read_config(const std::string& path);
std::expected<std::vector<ConfigText>, std::string> read_included(const std::string& folder,
                                                                  const std::string& pattern);

}  // namespace weir::kv

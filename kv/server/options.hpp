// The command line of weir-server: an optional configuration file, then --name value... as in the file.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "kv/server/settings.hpp"

namespace weir::kv {

struct StartOptions {
  Settings settings;
  std::string config_file;
  std::string answer;  // --help or --version: print this and end
};

// The error is fit to show a user.
std::expected<StartOptions, std::string> parse_options(const std::vector<std::string>& arguments);

}  // namespace weir::kv

// The command line of `weir stat`.
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/weir/host_port.hpp"

namespace weir::command {

struct StatOptions {
  bool once = false, json = false, prometheus = false, processes_only = false;
  double interval_s = 1;
  unsigned long count = 0;  // of looks; 0: until stopped
  std::string sort = "ops", library_directory;
  std::optional<HostPort> listen;  // for Prometheus
  std::vector<int> pids;
};

struct StatRefusal {
  int status;        // 0: help was asked for
  std::string text;  // help, or what is wrong
};

std::expected<StatOptions, StatRefusal> read_stat_options(std::span<const std::string> arguments);

}  // namespace weir::command

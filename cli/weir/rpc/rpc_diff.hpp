// `weir rpc diff`: compares a service's old and new functions, and says whether old callers can call them.
//
// Pure: texts in, rows out.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/server/reflection.hpp"

namespace weir::command {

// Reads what `weir rpc list` printed, with --json or without.
std::expected<std::vector<rpc::MethodInfo>, std::string> listed_methods(std::string_view text);

struct MethodDifference {
  std::string name;
  std::string verdict;  // "breaking", "servers first", "compatible" or "new"
  std::string what;     // a sentence that says what changed
};
// The methods that differ, sorted by name.
std::vector<MethodDifference> differences(const std::vector<rpc::MethodInfo>& before,
                                          const std::vector<rpc::MethodInfo>& now);

// Prints them; returns 1 if one is breaking.
int print_differences(const std::vector<MethodDifference>& all, bool json);

}  // namespace weir::command

// CLIENT TRACKING as one client has asked for it.
#pragma once

#include <absl/container/btree_set.h>

#include <cstdint>
#include <string>

namespace weir::kv {

struct TrackingMode {
  bool broadcast = false;
  bool opt_in = false, opt_out = false;
  bool no_loop = false;        // skip its own changes
  bool caching = false;        // CLIENT CACHING was called for the next command
  bool broken = false;         // the client that should be told in its place has gone
  std::uint64_t redirect = 0;  // id of the client told in its place; 0: itself
  absl::btree_set<std::string> prefixes;
};

}  // namespace weir::kv

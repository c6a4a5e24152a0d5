// Adding members to a sorted set: what ZADD, ZINCRBY and GEOADD share.
#pragma once

#include <span>
#include <string_view>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"

namespace weir::kv {

struct AddOptions {
  bool only_new = false, only_old = false, only_greater = false, only_less = false;
  bool count_changed = false, increment = false;
};

struct ScoredMember {
  double score = 0;
  std::string_view member;
};

// At the key that is the call's first argument; answers the client. One member at least.
void add_scored(const Call& call, std::span<ScoredMember> members, const AddOptions& options);

}  // namespace weir::kv

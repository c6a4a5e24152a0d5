// What every server tells about itself: method "weir.methods", no arguments, returns the name and the types
// of each function (codec/schema.hpp). `weir rpc` uses it.
#pragma once

#include <string>
#include <vector>

#include "rpc/server/registry.hpp"

namespace weir::rpc {

struct MethodInfo {
  std::string name;
  std::string schema;  // empty if the function has a codec that does not tell
  std::string codec;   // "msgpack", "protobuf"
};

constexpr std::string_view methods_method = "weir.methods";
void add_reflection(Registry& registry);

}  // namespace weir::rpc

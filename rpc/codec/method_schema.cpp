#include "rpc/codec/method_schema.hpp"

#include <algorithm>

namespace weir::rpc {

MethodSchema numbered_schema(std::string text) {
  const std::uint64_t id = std::max<std::uint64_t>(1, method_id(text));
  return {std::move(text), id};
}

}  // namespace weir::rpc

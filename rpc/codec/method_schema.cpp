#include "rpc/codec/method_schema.hpp"

#include <algorithm>

namespace weir::rpc {

MethodSchema numbered_schema(std::string text, std::string without_enumerators) {
  const auto number = [](std::string_view of) { return std::max<std::uint64_t>(1, method_id(of)); };
  MethodSchema schema;
  if (!without_enumerators.empty() && without_enumerators != text) {
    schema.id_without_enumerators = number(without_enumerators);
    schema.text_without_enumerators = std::move(without_enumerators);
  }
  schema.id = number(text);
  schema.text = std::move(text);
  return schema;
}

}  // namespace weir::rpc

#include "kv/store/value.hpp"

#include "kv/number.hpp"

namespace weir::kv {

std::string_view type_name(Type type) {
  switch (type) {
    case Type::string:
      return "string";
    case Type::list:
      return "list";
    case Type::set:
      return "set";
    case Type::hash:
      return "hash";
    case Type::zset:
      return "zset";
  }
  return "none";
}

void Value::destroy_collection() {}
Value Value::copy() const { return Value(Bytes(bytes_)); }
std::string_view Value::encoding() const {
  constexpr std::size_t embedded = 44;  // Redis keeps strings up to here in one block with their header
  const std::string_view text = bytes_.view();
  if (edited_) return "raw";
  if (parse_int(text)) return "int";
  return text.size() <= embedded ? "embstr" : "raw";
}
std::size_t Value::heap_size() const { return bytes_.heap_size(); }

}  // namespace weir::kv

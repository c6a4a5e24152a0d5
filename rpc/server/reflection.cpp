#include "rpc/server/reflection.hpp"

namespace weir::rpc {

namespace {
Result<void> list_methods(void* object, Context&, std::span<const std::byte>, ReplyBody& reply) {
  std::vector<MethodInfo> methods;
  for (const Registered* row : static_cast<const Registry*>(object)->by_name())
    methods.push_back({row->name, row->schema.text, std::string(row->codec_name)});
  return write_result<MessagePack>(methods, reply);
}
}  // namespace

void add_reflection(Registry& registry) {
  Registered row;
  row.name = methods_method;
  row.schema = numbered_schema("() -> [MethodInfo{name: str, schema: str, codec: str}]");
  row.object = &registry;
  row.now = list_methods;
  registry.add(row);
}

}  // namespace weir::rpc

#include "rpc/codec/agreed_schemas.hpp"

#include <cstring>

#include "rpc/codec/method_schema.hpp"
#include "rpc/codec/schema_check.hpp"

namespace weir::rpc {

void append(Bytes& to, const CallerSchema& schema) {
  const auto text_bytes = static_cast<std::uint16_t>(schema.text.size());
  std::byte* at = to.grow(schema.bytes());
  std::memcpy(at, &schema.id, sizeof schema.id);
  std::memcpy(at + sizeof schema.id, &text_bytes, sizeof text_bytes);
  schema.text.copy(reinterpret_cast<char*>(at + CallerSchema::fixed_bytes), text_bytes);
}

Result<CallerSchema> read_caller_schema(std::span<const std::byte> body) {
  CallerSchema schema;
  std::uint16_t text_bytes = 0;
  if (body.size() >= CallerSchema::fixed_bytes) {
    std::memcpy(&schema.id, body.data(), sizeof schema.id);
    std::memcpy(&text_bytes, body.data() + sizeof schema.id, sizeof text_bytes);
    body = body.subspan(CallerSchema::fixed_bytes);
    schema.text = {reinterpret_cast<const char*>(body.data()),
                   std::min<std::size_t>(text_bytes, body.size())};
  }
  if (schema.id == 0 || schema.text.size() != text_bytes)
    return fail(Errc::bad_arguments, "a typed request without whole types");
  return schema;
}

std::optional<Error> AgreedSchemas::why_not(std::string_view name, const MethodSchema& served,
                                            const CallerSchema& caller) {
  if (served.id == 0 || served.id == caller.id || served.id_without_enumerators == caller.id)
    return std::nullopt;
  const Key key{served.id, caller.id};
  auto known = verdicts_.find(key);
  if (known == verdicts_.end() && caller.text.empty())
    return Error{Errc::schema_mismatch,
                 std::string(name) + ": the caller has other types than the server, and did not tell them"};
  if (known == verdicts_.end()) {
    if (verdicts_.size() >= most_verdicts) verdicts_.clear();
    ++compared_;
    known = verdicts_.emplace(key, why_not_callable(caller.text, served.text)).first;
  }
  if (!known->second) return std::nullopt;
  return Error{Errc::schema_mismatch, std::string(name) + ": " + *known->second +
                                          "; bring both ends to releases that go together (weir rpc diff)"};
}

}  // namespace weir::rpc

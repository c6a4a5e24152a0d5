#include "kv/rdb/dump_payload.hpp"

#include <cstring>

#include "kv/rdb/checksum.hpp"
#include "kv/rdb/value_encoder.hpp"

namespace weir::kv::rdb {

namespace {

constexpr std::size_t version_size = 2;
constexpr std::size_t checksum_size = 8;

}  // namespace

std::string seal(const Encoded& encoded, int version) {
  std::string payload;
  encoded.finish(Compression::lzf, payload);
  payload.push_back(static_cast<char>(version & 0xff));
  payload.push_back(static_cast<char>(version >> 8));
  const std::uint64_t sum = checksum(0, payload);
  char bytes[checksum_size];
  std::memcpy(bytes, &sum, sizeof bytes);
  return payload.append(bytes, sizeof bytes);
}

std::optional<std::string_view> unseal(std::string_view payload) {
  if (payload.size() < version_size + checksum_size) return std::nullopt;
  const std::string_view summed = payload.substr(0, payload.size() - checksum_size);
  const std::string_view held = summed.substr(0, summed.size() - version_size);
  std::uint16_t version;
  std::memcpy(&version, summed.data() + held.size(), sizeof version);
  std::uint64_t sum;
  std::memcpy(&sum, payload.data() + summed.size(), sizeof sum);
  // In files a checksum of 0 means "not checked"; in payloads it is always checked.
  if ((version > newest_version && version < first_of_valkey) || sum != checksum(0, summed))
    return std::nullopt;
  if (version < first_of_valkey && held.starts_with(static_cast<char>(ValueType::hash_of_valkey)))
    return std::nullopt;
  return held;
}

std::string dump(const Value& value, Dialect dialect) {
  Encoded encoded;
  const ValueType type = type_of(value, dialect);
  encoded.put_type(type);
  put_value(encoded, value, dialect);
  return seal(encoded, type == ValueType::hash_of_valkey ? first_of_valkey : version_written);
}

std::expected<Value, Error> restore(std::string_view unsealed, const Limits& limits,
                                    std::uint64_t decompressed_most) {
  Reader in(unsealed, decompressed_most);
  const auto type = static_cast<ValueType>(in.byte());
  auto value = read_value(in, type, limits);
  if (!value) return std::unexpected(in.error());
  if (!in.at_end()) return std::unexpected(Error{Error::Kind::corrupt, "bytes are left over"});
  if (!may_be_kept(*value))
    return std::unexpected(Error{Error::Kind::corrupt, "a collection without elements"});
  return std::move(*value);
}

std::string dump_functions(const std::vector<std::string_view>& texts) {
  Encoded encoded;
  for (const std::string_view text : texts) {
    encoded.put_opcode(Opcode::function);
    encoded.put_text(text);
  }
  return seal(encoded, version_written);
}

std::expected<std::vector<std::string>, std::string> restore_functions(std::string_view unsealed,
                                                                       std::uint64_t decompressed_most) {
  Reader in(unsealed, decompressed_most);
  std::vector<std::string> texts;
  while (!in.at_end()) {
    const auto code = static_cast<Opcode>(in.byte());
    if (code == Opcode::old_function) return std::unexpected("Pre-GA function format not supported");
    if (code != Opcode::function) return std::unexpected("given type is not a function");
    texts.emplace_back(in.text());
    if (in.failed()) return std::unexpected("Failed loading library code");
  }
  return texts;
}

}  // namespace weir::kv::rdb

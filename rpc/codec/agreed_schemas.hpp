// Which types the client of a connection has for the server's functions, and whether they go together with
// the server's own.
//
// A request that is FrameFlag::typed begins, behind its trace context, with
//
//   offset  bytes
//        0      8  the number of the caller's schema of the function (method_schema.hpp)
//        8      2  bytes of that schema's text; 0 where the caller has told it on this connection
//       10         the text
//
// little endian. If the numbers are equal, nothing else is checked. Otherwise the texts are compared
// (codec/schema_check.hpp), once for each connection, and a call with incompatible types ends with
// Errc::schema_mismatch and does not run.
//
// Pure. Memory: at most most_verdicts answers, each no longer than a sentence. Threading: the connection's
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "hash/keyed.hpp"
#include "rpc/error.hpp"
#include "rpc/wire/bytes.hpp"

namespace weir::rpc {

struct MethodSchema;

// As it stands before the arguments.
struct CallerSchema {
  std::uint64_t id = 0;
  std::string_view text;  // in the body

  static constexpr std::size_t fixed_bytes = 10;
  std::size_t bytes() const { return fixed_bytes + text.size(); }
};
void append(Bytes& to, const CallerSchema& schema);
Result<CallerSchema> read_caller_schema(std::span<const std::byte> body);

class AgreedSchemas {
 public:
  static constexpr std::size_t most_verdicts = 256;

  // Why a caller with this schema cannot call the function `name`, which the server has as `served`.
  std::optional<Error> why_not(std::string_view name, const MethodSchema& served, const CallerSchema& caller);
  // Texts that were compared.
  std::size_t compared() const { return compared_; }

 private:
  struct Key {
    std::uint64_t served;
    std::uint64_t callers;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return hash::Keyed()(key.served ^ hash::Keyed()(key.callers));
    }
  };
  std::unordered_map<Key, std::optional<std::string>, KeyHash> verdicts_;
  std::size_t compared_ = 0;
};

}  // namespace weir::rpc

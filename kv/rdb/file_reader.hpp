// A whole snapshot: databases, their keys, when these expire, and functions, handed to a Target.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "kv/rdb/reader.hpp"
#include "kv/rdb/value_decoder.hpp"

namespace weir::kv::rdb {

// What a snapshot says of a key beside its value.
struct About {
  std::optional<std::int64_t> expires_at_ms;
  std::optional<std::uint64_t> idle_s;
  std::optional<std::uint8_t> frequency;
};

// Receives what is read, in the order of the file. Functions that return a text use it to refuse: the text is
// the reason, empty if all is well.
class Target {
 public:
  virtual ~Target() = default;
  virtual void aux(std::string_view name, std::string_view value) = 0;
  virtual std::string select(std::uint64_t database) = 0;
  virtual void sizes(std::uint64_t keys, std::uint64_t expiring) = 0;
  virtual std::string record(std::string_view key, Value value, const About& about) = 0;
  virtual std::string function(std::string_view text) = 0;
  // Asked before each record; false: stop.
  virtual bool go_on(std::uint64_t bytes_read) = 0;
};

enum class Checked : std::uint8_t { yes, no };

// From the first byte to the checksum; returns how many bytes that were. What was handed over before an error
// stays with the target.
std::expected<std::uint64_t, Error> read_file(Source& source, const Limits& limits, Checked checksum,
                                              Target& target);

}  // namespace weir::kv::rdb

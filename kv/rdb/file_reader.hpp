// Reads a whole snapshot and passes its databases, keys, expiry times and functions to a Target.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "kv/rdb/reader.hpp"
#include "kv/rdb/value_decoder.hpp"

namespace weir::kv::rdb {

// What a snapshot stores for a key besides its value.
struct About {
  std::optional<std::int64_t> expires_at_ms;
  std::optional<std::uint64_t> idle_s;
  std::optional<std::uint8_t> frequency;
};

// Receives what is read, in the order of the file. A function that returns a text accepts with an empty one,
// and otherwise rejects with the reason.
class Target {
 public:
  virtual ~Target() = default;
  virtual void aux(std::string_view name, std::string_view value) = 0;
  virtual std::string select(std::uint64_t database) = 0;
  virtual void sizes(std::uint64_t keys, std::uint64_t expiring) = 0;
  // The record of this key is next; its value isn't read yet.
  virtual void coming(std::string_view) {}
  virtual std::string record(std::string_view key, Value value, const About& about) = 0;
  virtual std::string function(std::string_view text) = 0;
  // Called before each record; return false to stop.
  virtual bool go_on(std::uint64_t bytes_read) = 0;
};

enum class Checked : std::uint8_t { yes, no };

// Reads from the first byte to the checksum and returns the number of bytes. What was passed to the target
// before an error stays there.
std::expected<std::uint64_t, Error> read_file(Source& source, const Limits& limits, Checked checksum,
                                              Target& target);

}  // namespace weir::kv::rdb

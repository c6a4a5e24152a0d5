// The list of files that make up the log, as Redis 7 keeps it: one base, which is the data at some moment,
// and the increments that follow it in order. History files are no longer part of the log and about to be
// deleted.
//
// A line is "file NAME seq N type b|h|i"; pairs with other names are passed over, as are lines that begin
// with
// '#'. A name with spaces or control characters stands in quotes. Invariants of what parse_manifest()
// returns: at most one base, increments in ascending order, no name has a path in it, none occurs twice.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::kv::aof {

struct LogFile {
  std::string name;
  std::int64_t sequence = 0;

  friend bool operator==(const LogFile&, const LogFile&) = default;
};

struct Manifest {
  std::optional<LogFile> base;
  std::vector<LogFile> increments;
  std::vector<LogFile> history;

  friend bool operator==(const Manifest&, const Manifest&) = default;

  std::int64_t last_base() const { return base ? base->sequence : 0; }
  std::int64_t last_increment() const { return increments.empty() ? 0 : increments.back().sequence; }
};

// The error is Redis's, fit for the log.
std::expected<Manifest, std::string> parse_manifest(std::string_view text);
std::string manifest_text(const Manifest& manifest);

// A name that stands for a file in a given folder and nowhere else.
bool is_plain_name(std::string_view name);

}  // namespace weir::kv::aof

// The list of the log's files, in the format of Redis 7: one base, which holds the data at some
// moment, and the increments that follow it in order. History files are no longer part of the
// log and will be deleted.
//
// A line is "file NAME seq N type b|h|i". Pairs with other names are skipped, as are lines
// that begin with '#'. A name with spaces or control characters is quoted. Invariants of
// parse_manifest()'s result: at most one base; increments in ascending order; no name contains
// a path or occurs twice.
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

// The error is Redis's text, for the log.
std::expected<Manifest, std::string> parse_manifest(std::string_view text);
std::string manifest_text(const Manifest& manifest);

// Whether the name can only mean a file within a given folder.
bool is_plain_name(std::string_view name);

}  // namespace weir::kv::aof

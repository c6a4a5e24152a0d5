// Reads a file of a server's data from its first byte to its last.
//
// It uses the server's own readers, so a file that is whole here is one that the server accepts: the form of
// the bytes, the checksums, and for each request whether it belongs in a log. Requests are not run. No data
// is kept: memory is bounded by the largest value and the largest transaction in the file.
//
// Any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

namespace weir::check {

// What is known before reading, from the file's name or a manifest.
enum class Expected : std::uint8_t { anything, snapshot, log };

enum class State : std::uint8_t {
  whole,
  truncated,  // it ends too early
  damaged,    // it contains invalid bytes
  refused,    // probably valid, but not for this server
  missing,    // listed in a manifest but absent
};

struct SnapshotFound {
  int version = 0;
  std::string written_by;       // the server's version; empty: not stated
  std::uint64_t databases = 0;  // number of databases with keys
  std::uint64_t keys = 0, expiring = 0, functions = 0;
};

struct LogFound {
  std::uint64_t requests = 0, transactions = 0;
};

struct CheckedFile {
  std::string path;
  std::uint64_t size = 0;
  std::optional<SnapshotFound> snapshot;
  std::optional<LogFound> log;  // if there is a snapshot, too: what follows it
  State state = State::whole;
  std::uint64_t whole_bytes = 0;  // of a log: where the broken part begins
  std::string why;                // what is wrong or, in a whole file, unusual

  bool whole() const { return state == State::whole; }
};

// The error: the file cannot be read.
std::expected<CheckedFile, std::string> check_file(const std::string& path, Expected expected);

}  // namespace weir::check

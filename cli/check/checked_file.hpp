// One file of a server's data, read from its first byte to its last.
//
// The readers are the server's own, so what is whole here is what the server takes: the form of the bytes,
// the checksums, and for each request whether it belongs in a log. The requests are not run. Of the data
// nothing is kept: memory is bounded by the largest value and the largest transaction in the file.
//
// Any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

namespace weir::check {

// What is known of a file before it is read: what its name or a manifest says.
enum class Expected : std::uint8_t { anything, snapshot, log };

enum class State : std::uint8_t {
  whole,
  truncated,  // it ends too early
  damaged,    // there are bytes in it that cannot be
  refused,    // fine, it seems, but not for this server
  missing,    // a manifest lists it, and it is not there
};

struct SnapshotFound {
  int version = 0;
  std::string written_by;       // the version of the server; empty: it does not say
  std::uint64_t databases = 0;  // that have keys
  std::uint64_t keys = 0, expiring = 0, functions = 0;
};

struct LogFound {
  std::uint64_t requests = 0, transactions = 0;
};

struct CheckedFile {
  std::string path;
  std::uint64_t size = 0;
  std::optional<SnapshotFound> snapshot;
  std::optional<LogFound> log;  // with a snapshot: what follows it
  State state = State::whole;
  std::uint64_t whole_bytes = 0;  // of a log: where what is not whole begins
  std::string why;                // what is wrong; of a whole file, what is odd

  bool whole() const { return state == State::whole; }
};

// The error: it cannot be read.
std::expected<CheckedFile, std::string> check_file(const std::string& path, Expected expected);

}  // namespace weir::check

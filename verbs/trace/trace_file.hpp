// A file that several processes append whole records to.
//
// Records wait in a buffer of bounded size, which is written when it is full and when flush() is called. So a
// traced program waits for the file, and nothing is dropped for lack of a reader.
// What is dropped, because the file reached its limit or could not be written, is counted. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/unique_fd.hpp"

namespace weir::verbs {

class TraceFile {
 public:
  // "-" is standard error, which has no limit. Whoever finds the file empty writes `head` first. nullopt with
  // errno: it cannot be opened.
  static std::optional<TraceFile> open(const std::string& path, std::uint64_t limit_bytes,
                                       std::vector<std::byte> head);

  // One record, of one event.
  void append(std::span<const std::byte> record);
  void flush();
  std::uint64_t dropped() const { return dropped_; }
  // Past the limit too: the last word.
  void append_regardless(std::span<const std::byte> record);

 private:
  TraceFile(link::UniqueFd file, std::uint64_t limit_bytes, std::vector<std::byte> head);
  void write_out(bool regardless);
  std::size_t records_that_fit(std::uint64_t file_bytes) const;

  link::UniqueFd file_;
  std::uint64_t limit_bytes_;
  std::vector<std::byte> head_;
  std::vector<std::byte> buffer_;
  std::vector<std::size_t> ends_;  // of the records in the buffer
  std::uint64_t dropped_ = 0;      // records
  bool full_ = false;              // one did not fit, and none is to follow it
};

}  // namespace weir::verbs

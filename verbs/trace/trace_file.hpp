// A file that several processes append whole records to.
//
// Records wait in a buffer of bounded size, which is written when it is full and by flush(). So a traced
// program waits for the file, and nothing is lost because a reader is slow. Records dropped because the file
// reached its limit or could not be written are counted. Not thread-safe.
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
  // "-" is standard error, which has no limit. The process that finds the file empty writes `head` first.
  // nullopt with errno: the file cannot be opened.
  static std::optional<TraceFile> open(const std::string& path, std::uint64_t limit_bytes,
                                       std::vector<std::byte> head);

  // Appends one record, which describes one event.
  void append(std::span<const std::byte> record);
  void flush();
  std::uint64_t dropped() const { return dropped_; }
  // For the last record: ignores the limit.
  void append_regardless(std::span<const std::byte> record);

 private:
  TraceFile(link::UniqueFd file, std::uint64_t limit_bytes, std::vector<std::byte> head);
  void write_out(bool regardless);
  std::size_t records_that_fit(std::uint64_t file_bytes) const;

  link::UniqueFd file_;
  std::uint64_t limit_bytes_;
  std::vector<std::byte> head_;
  std::vector<std::byte> buffer_;
  std::vector<std::size_t> ends_;  // where each record in the buffer ends
  std::uint64_t dropped_ = 0;      // records
  bool full_ = false;              // a record did not fit, so none may follow
};

}  // namespace weir::verbs

// How much of the history is in this replica's log on the disk: what "REPLCONF ACK n FACK m" tells the
// primary (Redis 7.2), whose WAITAOF counts it.
//
// The log and the history have positions of their own, so one pair of them is kept: when the log is on the
// disk up to the pair's position, the history is too, and the next pair is taken. So what is told may be a
// little less than what is there, and never more.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::kv::repl {

class SyncedHistory {
 public:
  // `applied`: the history so far, all of which is in the log up to `written`; the log and its base are on
  // the disk up to `synced`.
  void note(std::int64_t applied, std::uint64_t written, std::uint64_t synced) {
    if (written < written_) applied_ = 0, written_ = 0;  // the log began anew; its base has what was synced
    if (synced >= written_) {
      synced_ = std::max(synced_, applied_);
      applied_ = applied;
      written_ = written;
    }
    if (synced >= written) synced_ = applied;
  }
  // How much of the history is on the disk.
  std::int64_t so_far() const { return synced_; }

 private:
  std::int64_t applied_ = 0;
  std::uint64_t written_ = 0;
  std::int64_t synced_ = 0;
};

}  // namespace weir::kv::repl

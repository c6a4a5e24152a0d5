// Writes a snapshot to a file, in turns with the server's other work.
//
// A turn takes half a millisecond, after which the server has at least as long for its clients. A
// thread writes what the turns encode; if it falls behind, the turns wait. Data that must be encoded
// because clients change keys cannot wait. If that exceeds pending_most, the disk is too slow for the
// clients, and the snapshot fails.
//
// Threading: the server's one thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "kv/counting/cycles.hpp"
#include "kv/persistence/snapshot_file.hpp"

namespace weir::kv {

class BackgroundSnapshot {
 public:
  using Outcome = SnapshotFile::Outcome;

  // `ended` is called once, from the event loop, with success or the error. It may destroy this object;
  // destroying it earlier abandons the snapshot.
  BackgroundSnapshot(asio::io_context& io, const CycleRate& cycle_rate, SnapshotFile::Choice choice,
                     std::function<void(Outcome)> ended);
  ~BackgroundSnapshot() { *self_ = nullptr; }
  BackgroundSnapshot(const BackgroundSnapshot&) = delete;
  BackgroundSnapshot& operator=(const BackgroundSnapshot&) = delete;

  // Each call of `step` adds a part of the snapshot; it returns false after the last part.
  void begin(std::function<bool()> step);
  void add(rdb::Encoded chunk) { file_.add(std::move(chunk)); }
  // Memory that is free again once the disk has it.
  std::size_t memory() const { return file_.waiting_bytes(); }

  static constexpr std::size_t pending_most = 256 << 20;

 private:
  void rest(std::int64_t us);
  void take_turn();
  void finish(Outcome outcome);

  const CycleRate& cycle_rate_;
  std::function<void(Outcome)> ended_;
  asio::steady_timer timer_;
  std::shared_ptr<BackgroundSnapshot*> self_;  // for late messages from the file's thread
  SnapshotFile file_;
  std::function<bool()> step_;  // empty: everything is encoded, only the disk is not done
};

}  // namespace weir::kv

// A snapshot on its way to a file, made in turns with the server's other work.
//
// A turn takes half a millisecond, and the server then has at least as long for its clients. A thread writes
// what the turns encoded; if it falls behind, the turns wait for it. Data added because clients change keys
// meanwhile cannot wait: if that exceeds pending_most, the disk is too slow for the clients, and the snapshot
// fails.
//
// Threading: the server's one thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "kv/persistence/snapshot_file.hpp"
#include "kv/server/cycles.hpp"

namespace weir::kv {

class BackgroundSnapshot {
 public:
  using Outcome = SnapshotFile::Outcome;

  // `ended` is called once, from the event loop: the file is on the disk, or what went wrong. It may destroy
  // this object, which gives up what is not complete by then.
  BackgroundSnapshot(asio::io_context& io, const CycleRate& cycle_rate, SnapshotFile::Choice choice,
                     std::function<void(Outcome)> ended);
  ~BackgroundSnapshot() { *self_ = nullptr; }
  BackgroundSnapshot(const BackgroundSnapshot&) = delete;
  BackgroundSnapshot& operator=(const BackgroundSnapshot&) = delete;

  // Each call of `step` adds some of the snapshot; it returns false when that was all of it.
  void begin(std::function<bool()> step);
  void add(rdb::Encoded chunk) { file_.add(std::move(chunk)); }

  static constexpr std::size_t pending_most = 256 << 20;

 private:
  void rest(std::int64_t us);
  void take_turn();
  void finish(Outcome outcome);

  const CycleRate& cycle_rate_;
  std::function<void(Outcome)> ended_;
  asio::steady_timer timer_;
  std::shared_ptr<BackgroundSnapshot*> self_;  // for what comes from the file's thread when this may be gone
  SnapshotFile file_;
  std::function<bool()> step_;  // empty: all is encoded, and the disk is waited for
};

}  // namespace weir::kv

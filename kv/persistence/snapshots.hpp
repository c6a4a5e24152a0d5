// When snapshots are taken, and their results: SAVE, BGSAVE, save points, and the last one before the end.
//
// A background snapshot is made in turns with the server's other work (background_snapshot.hpp). All
// databases share one walk at a time, so anything else that needs a walk asks here as well.
//
// Threading: the server's one thread.
#pragma once

#include <asio/steady_timer.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kv/persistence/background_snapshot.hpp"
#include "kv/persistence/snapshot.hpp"
#include "kv/settings/save_points.hpp"

namespace weir::kv {

class ServerWhole;

// What to do with the data when the server ends; as_configured: a snapshot if there are save points.
enum class EndWish : std::uint8_t { as_configured, save, nothing };

class Snapshots {
 public:
  using Outcome = SnapshotFile::Outcome;

  Snapshots(SnapshotSource source, ServerWhole& whole);
  ~Snapshots() { abandon(); }
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  // What snapshots are taken of, for another owner's Snapshot.
  const SnapshotSource& source() const { return source_; }
  bool running() const { return running_ != nullptr; }
  // Whether the walk is in use: by running(), or lent.
  bool busy() const { return running() || take_back_ != nullptr; }
  // Lends the walk to another owner's Snapshot: returns its number, or nullopt if a walk is in progress.
  // `take_back` is called if this server needs the walk itself; when it returns the walk must be over.
  enum class LentTo : std::uint8_t { log, replicas };
  std::optional<std::uint32_t> lend_walk(LentTo whom, std::function<void()> take_back);
  bool lent_to_log() const { return take_back_ != nullptr && lent_to_ == LentTo::log; }
  void walk_returned() { take_back_ = nullptr; }
  // Takes a snapshot and waits for it; meanwhile nobody is served.
  Outcome save();
  // Begins a snapshot in the background; fails if one is running.
  Outcome start();
  // Begins one as soon as the walk is free.
  void start_soon();
  // Abandons the running one, if any.
  void abandon();

  // The server is about to end. On an error the data is not saved, and the server should continue.
  Outcome before_end(EndWish wish);

  // Begins a snapshot if a save point is reached.
  void look_at_clock();
  // The setting `save` may have changed.
  void settings_changed();
  bool has_save_points() const { return !points_.empty(); }

  // Whether the last snapshot failed and the settings therefore forbid changes.
  bool refuses_writes() const;
  static constexpr std::string_view writes_refused =
      "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. "
      "Commands that may modify the data set are disabled, because this instance is configured to report "
      "errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the "
      "Redis logs for details about the RDB error.";

  // The data now equals a snapshot of that time.
  void loaded(std::int64_t saved_at_s);

  // For INFO and LASTSAVE.
  struct State {
    std::int64_t last_save_s = 0;  // completion time of the last good one; 0: never
    bool last_ok = true;
    std::int64_t last_duration_s = -1;
    std::uint64_t saves = 0;
  };
  const State& state() const { return state_; }
  std::uint64_t changes_since() const;
  // Memory that the running one, not a lent walk's, takes until it is on the disk.
  std::size_t memory() const;
  std::int64_t running_for_s() const;  // -1: none is running
  const Snapshot* current() const;

 private:
  struct Running {
    std::uint64_t changes_before = 0;
    std::int64_t began_s = 0;
    std::unique_ptr<BackgroundSnapshot> file;
    std::unique_ptr<Snapshot> snapshot;  // fills `file`, so it is destroyed first; null: all is encoded
  };

  SnapshotFile::Choice choice() const;
  void ended(Outcome outcome, std::uint64_t changes_before, std::int64_t began_s);
  void watch_clock();

  ServerCommon& server_;
  SnapshotSource source_;
  ServerWhole& whole_;
  std::vector<SavePoint> points_;
  std::unique_ptr<Running> running_;
  std::uint32_t number_ = 0;         // the last walk's
  std::function<void()> take_back_;  // empty: no walk is lent
  LentTo lent_to_ = LentTo::log;
  State state_;
  std::uint64_t changes_saved_ = 0;    // how many changes the last one, or the loaded one, holds
  std::int64_t counting_since_s_ = 0;  // for save points: the end of the last one, or the server's start
  std::int64_t next_try_s_ = 0;
  bool scheduled_ = false;
  asio::steady_timer clock_timer_;
  bool clock_is_watched_ = false;
};

// Writes a snapshot in one go; meanwhile nobody is served. For the owner of a lent walk.
SnapshotFile::Outcome write_snapshot(SnapshotSource source, std::uint32_t number, Snapshot::Use use,
                                     SnapshotFile::Choice choice);

}  // namespace weir::kv

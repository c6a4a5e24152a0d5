// When snapshots are taken and what becomes of them: SAVE, BGSAVE, save points, and the one before the end.
//
// A background snapshot is made in turns with the server's other work (background_snapshot.hpp). Databases
// take part in one walk at a time, so anything else that needs a walk asks here, too.
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
#include "kv/persistence/save_points.hpp"
#include "kv/persistence/snapshot.hpp"

namespace weir::kv {

// What should happen to the data when the server ends; as_configured: a snapshot if there are save points.
enum class EndWish : std::uint8_t { as_configured, save, nothing };

class Snapshots {
 public:
  using Outcome = SnapshotFile::Outcome;

  explicit Snapshots(Server& server);
  ~Snapshots() { abandon(); }
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  bool running() const { return running_ != nullptr; }
  // Databases take part in one walk at a time: running(), or lent to somebody else.
  bool busy() const { return running() || take_back_ != nullptr; }
  // Lends a walk to another owner's Snapshot: the walk's number, or nullopt if there is a walk already.
  // `take_back` is called if this server needs the walk itself; the walk is over when that returns.
  enum class LentTo : std::uint8_t { log, replicas };
  std::optional<std::uint32_t> lend_walk(LentTo whom, std::function<void()> take_back);
  bool lent_to_log() const { return take_back_ != nullptr && lent_to_ == LentTo::log; }
  void walk_returned() { take_back_ = nullptr; }
  // Takes a snapshot and waits for it: nobody is served meanwhile.
  Outcome save();
  // Begins one in the background; fails if there is one already.
  Outcome start();
  // Begins one as soon as the walk is free.
  void start_soon();
  // Gives up the one that runs, if any.
  void abandon();

  // The server is about to end. On an error the data is not saved, and the server should not end.
  Outcome before_end(EndWish wish);

  // Begins a snapshot if a save point requires one.
  void look_at_clock();
  // The setting `save` may have changed.
  void settings_changed();
  bool has_save_points() const { return !points_.empty(); }

  // Whether the last snapshot failed and the settings forbid changes of the data in that case.
  bool refuses_writes() const;
  static constexpr std::string_view writes_refused =
      "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. "
      "Commands that may modify the data set are disabled, because this instance is configured to report "
      "errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the "
      "Redis logs for details about the RDB error.";

  // The data is now what a snapshot of that time holds.
  void loaded(std::int64_t saved_at_s);

  // For INFO and LASTSAVE.
  struct State {
    std::int64_t last_save_s = 0;  // when the last good one was complete; 0: never
    bool last_ok = true;
    std::int64_t last_duration_s = -1;
    std::uint64_t saves = 0;
  };
  const State& state() const { return state_; }
  std::uint64_t changes_since() const;
  std::int64_t running_for_s() const;  // -1: none runs
  const Snapshot* current() const;

 private:
  struct Running {
    std::uint64_t changes_before = 0;
    std::int64_t began_s = 0;
    std::unique_ptr<BackgroundSnapshot> file;
    std::unique_ptr<Snapshot> snapshot;  // fills it, so goes first; null: all is encoded
  };

  SnapshotFile::Choice choice() const;
  void ended(Outcome outcome, std::uint64_t changes_before, std::int64_t began_s);
  void watch_clock();

  Server& server_;
  std::vector<SavePoint> points_;
  std::unique_ptr<Running> running_;
  std::uint32_t number_ = 0;         // of the last walk
  std::function<void()> take_back_;  // empty: no walk is lent
  LentTo lent_to_ = LentTo::log;
  State state_;
  std::uint64_t changes_saved_ = 0;    // the count of changes that the last one, or what was loaded, holds
  std::int64_t counting_since_s_ = 0;  // for save points: the last one's end, or the server's start
  std::int64_t next_try_s_ = 0;
  bool scheduled_ = false;
  asio::steady_timer clock_timer_;
  bool clock_is_watched_ = false;
};

// Writes a snapshot in one go: nobody is served meanwhile. For an owner of a lent walk.
SnapshotFile::Outcome write_snapshot(Server& server, std::uint32_t number, Snapshot::Use use,
                                     SnapshotFile::Choice choice);

}  // namespace weir::kv

// When snapshots are taken and what becomes of them: SAVE, BGSAVE, save points, and the one before the end.
//
// One in the background is made in turns with whatever else the server does: a turn takes half a millisecond,
// and the server then has at least as long for its clients. A thread writes what the turns encoded; if it
// falls behind, the turns wait for it. What changed keys add meanwhile cannot wait: where that comes to more
// than pending_most, the disk is too slow for the clients, and the snapshot fails.
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

#include "kv/persistence/save_points.hpp"
#include "kv/persistence/snapshot.hpp"
#include "kv/persistence/snapshot_file.hpp"

namespace weir::kv {

// What whoever ends the server wants of the data; as_configured: a snapshot if there are save points.
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
  // For whoever makes a Snapshot of its own: the walk's number; nothing: there is a walk already. `take_back`
  // is called where this server needs it itself; the walk is over when that returns.
  std::optional<std::uint32_t> lend_walk(std::function<void()> take_back);
  void walk_returned() { take_back_ = nullptr; }
  // Takes one and waits for it: nobody is served meanwhile.
  Outcome save();
  // Begins one in the background; the error: there is one already.
  Outcome start();
  // Gives up the one that runs, if any.
  void abandon();

  // The server is about to end. The error: the data is not saved, and it should not end.
  Outcome before_end(EndWish wish);

  // Begins one if a save point wants it.
  void look_at_clock();
  // The setting `save` may have changed.
  void settings_changed();
  bool has_save_points() const { return !points_.empty(); }

  // The last one failed, and the settings say that no data may change then.
  bool refuses_writes() const;
  static constexpr std::string_view writes_refused =
      "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. "
      "Commands that may modify the data set are disabled, because this instance is configured to report "
      "errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the "
      "Redis logs for details about the RDB error.";

  // The data is what a snapshot of that time holds.
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

  static constexpr std::size_t pending_most = 256 << 20;

 private:
  struct Running {
    std::unique_ptr<SnapshotFile> file;
    std::unique_ptr<Snapshot> snapshot;  // null: encoded whole
    std::uint64_t changes_before;
    std::int64_t began_s;
  };

  SnapshotFile::Choice choice() const;
  std::unique_ptr<Snapshot> begin(SnapshotFile& file);
  void take_turn();
  void rest(std::int64_t us);
  void ended(Outcome outcome, std::uint64_t changes_before, std::int64_t began_s);
  void watch_clock();

  Server& server_;
  std::vector<SavePoint> points_;
  std::unique_ptr<Running> running_;
  std::uint32_t number_ = 0;         // of the last walk
  std::function<void()> take_back_;  // empty: no walk is lent
  State state_;
  std::uint64_t changes_saved_ = 0;    // the count of changes that the last one, or what was loaded, holds
  std::int64_t counting_since_s_ = 0;  // for save points: the last one's end, or the server's start
  std::int64_t next_try_s_ = 0;
  asio::steady_timer turn_timer_;
  asio::steady_timer clock_timer_;
  bool clock_is_watched_ = false;
  std::shared_ptr<Snapshots*> self_;  // for what comes from the file's thread when this may be gone
};

}  // namespace weir::kv

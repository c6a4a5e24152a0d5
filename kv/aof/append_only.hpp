// The append-only log of a server: changes that it acknowledged are restored at its next start.
//
// The log consists of a base, which is a snapshot of the data at some moment, and of increments, which hold
// the effects since then (log_files.hpp). start() reads them and continues in the newest increment. rewrite()
// begins an increment and writes a snapshot of that moment, in turns with serving clients. Once the snapshot
// is on the disk it becomes the base, and older files are deleted.
//
// Failures: while refusal() is not empty the server refuses commands that write, and a timer tries again. A
// failed write resumes where it stopped. After a failed fsync the log is rewritten from memory, because
// nobody knows how much of it is on the disk.
//
// Threading: the server's one thread.
#pragma once

#include <asio/steady_timer.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "kv/aof/log_files.hpp"
#include "kv/aof/log_writer.hpp"
#include "kv/aof/sync_waiters.hpp"
#include "kv/persistence/background_snapshot.hpp"
#include "kv/persistence/loading.hpp"
#include "kv/persistence/snapshot.hpp"

namespace weir::kv {
class Client;
class ServerParts;
}  // namespace weir::kv

namespace weir::kv::aof {

class AppendOnly {
 public:
  using Done = std::expected<void, std::string>;

  AppendOnly(ServerParts& server, const Disk& disk);
  ~AppendOnly();
  AppendOnly(const AppendOnly&) = delete;
  AppendOnly& operator=(const AppendOnly&) = delete;

  // Reads the log into the empty databases and continues in it. If there is no log, begins one with the
  // snapshot's contents. `go_on` is called every few milliseconds; returning false stops the loading. The
  // error is for a user to read.
  std::expected<LoadResult, std::string> start(const std::function<bool()>& go_on);
  // Begins a log of the existing data.
  Done turn_on();
  void turn_off();
  // Likewise, as the server ends and serves nobody any more: the log is completed first, and says to which
  // place in the history it belongs.
  void end_as_planned();
  bool on() const { return files_ != nullptr && !writes_once_; }

  // Call before replies leave: writes the recorded effects to the log, as safely as appendfsync asks. Returns
  // false if that failed; waiting replies may report those changes, so they must not leave.
  bool keep() {
    if (writer_.anything_gathered() && refusal_.empty()) commit();
    return !std::exchange(replies_lie_, false);
  }
  // Why commands that write are refused; empty: they are not.
  const std::string& refusal() const { return refusal_; }

  // Whether every effect is on the disk. With appendfsync always this call ensures it.
  bool synced();
  // The log's length so far, in bytes.
  std::uint64_t position() const { return writer_.position(); }
  // False: what was in memory when the log began is not on the disk yet.
  bool has_base() const { return !files_->lacks_base(); }
  // Resumes the client, which is blocked, once the log is on the disk up to the client's position.
  void wait_for_sync(const Client& client);
  std::size_t waiters() const { return waiters_.size(); }
  // Replies to a client of WAITAOF that waits no longer.
  void give_up_waiting(Client& client) const;

  // Call before all data is replaced without reported effects. Later effects belong after a base of the new
  // data, which is written as soon as possible; until then the log on the disk is that of the old data. On an
  // error, which says why this is impossible, the log stays as it was.
  Done begin_anew();

  // Replaces all data by what the log says, as the next start would: for tests. The error is for a client to
  // read.
  Done load_again();

  // Begins to rewrite the log. While the log is off this writes one that holds the data of this moment, and
  // then leaves it alone; the next start with the log on begins with it. The error is for a client to read.
  enum class Begun : std::uint8_t { now, later };
  std::expected<Begun, std::string> rewrite();
  // Likewise, as soon as possible.
  void rewrite_soon();

  // Retries what failed, and syncs for appendfsync everysec; a timer calls it once a second.
  void tick();

  // For INFO.
  struct State {
    std::uint64_t rewrites = 0;
    bool last_ok = true;
    std::int64_t last_took_s = -1;
  };
  const State& state() const { return state_; }
  bool rewriting() const { return run_ != nullptr; }
  std::size_t memory_of_rewrite() const;
  bool rewrite_scheduled() const { return scheduled_; }
  std::int64_t rewriting_for_s() const;  // -1: no rewrite is running
  const LogWriter& writer() const { return writer_; }
  std::uint64_t size() const;
  std::uint64_t size_after_rewrite() const { return size_after_rewrite_; }  // or after the start

 private:
  Done begin(bool with_base);
  Done write_base();
  Done rewrite_at_once();
  bool whole_at_end();
  Done switch_file();
  Done begin_increment();
  Done begin_to_write_once();
  Done load_what_was_written_once();
  Done load_anew(LogFiles& files);
  void end_writing_once();
  SnapshotFile::Choice base_choice() const;
  void rewrite_ended(SnapshotFile::Outcome outcome);
  void adopt(SnapshotFile::Outcome outcome);
  void give_up_rewrite();
  bool wants_rewrite() const;
  Sync sync() const;
  bool flush();
  bool commit();
  bool note(bool kept);
  void after_sync();
  void serve_waiters();
  void arm_timer();

  ServerParts& server_;
  LogWriter writer_;
  std::unique_ptr<LogFiles> files_;  // null: the log is off, and none is being written
  bool writes_once_ = false;         // the log is off: files_ are only for the rewrite that is running
  std::string refusal_;
  bool replies_lie_ = false;  // see keep()
  SyncWaiters waiters_;
  std::unique_ptr<BackgroundSnapshot> run_;  // null: the log is not being rewritten
  std::unique_ptr<Snapshot> snapshot_;       // fills run_; null: everything is encoded
  std::int64_t run_began_ms_ = 0;
  bool scheduled_ = false;
  std::int64_t next_try_ms_ = 0;  // the earliest next try after a failed rewrite
  State state_;
  std::uint64_t size_after_rewrite_ = 0;
  asio::steady_timer timer_;
  bool timer_runs_ = false;
};

}  // namespace weir::kv::aof

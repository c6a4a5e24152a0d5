// The newest file of the log: appends effects as requests.
//
// Effects are gathered in memory and written by commit(), which the server calls before any reply of
// the round leaves. With Sync::always the bytes are on the disk when commit() returns true, so one
// fsync serves all clients of the round. With Sync::everysec another thread syncs once a second if
// needed. During a sync commit() does not write, because a write would wait for the disk; but it holds
// back for two seconds at most.
//
// Failures: after a failed write or fsync, failure() gives the reason and commit() returns false. Unwritten
// bytes stay in memory until a later retry() writes them. After a failed fsync nobody knows which bytes are
// on the disk, and a later success proves nothing (the system may have dropped them). So that failure stays
// until recovered() reports that another file and a base hold everything.
//
// Positions count the log's bytes over all its files since the server started. Clients wait until
// their position is on the disk.
//
// Threading: the server's one thread. The syncing thread uses only a descriptor.
#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kv/core/disk.hpp"
#include "kv/effects/effects.hpp"
#include "kv/text/heap.hpp"
#include "transport/owned_fd.hpp"

namespace weir::kv::aof {

enum class Sync : int { always, everysec, no };

class LogWriter final : public EffectListener {
 public:
  // `cpus`: for the syncing thread; empty: those of the caller.
  LogWriter(asio::io_context& io, Disk disk, std::string cpus = {});
  ~LogWriter() override;

  // Continues in a file that holds `size` bytes. No bytes may be gathered, because they belong in the
  // previous file, which the other thread syncs and closes.
  void begin(OwnedFd file, std::uint64_t size);
  // Everything before this file is on the disk by other means, so earlier failures no longer matter.
  void recovered();
  // Writes and syncs the rest, and closes the file.
  void end();

  void effect(int db, std::string_view request) override;
  // Adds a line that is no request; it ends with a line end.
  void add_note(std::string_view line) { gathered_ += line; }

  bool anything_gathered() const { return !gathered_.empty(); }
  // Writes the gathered bytes now; false: that failed.
  bool write();
  // Likewise, and with Sync::always syncs them.
  bool flush(Sync sync);
  // As flush(), but with Sync::everysec it waits for a sync in the other thread. False: it
  // failed, now or earlier.
  bool commit(Sync sync, std::int64_t now_ms);
  // Retries what failed; call it now and then.
  void retry(Sync sync);
  // Begins a sync in the other thread, unless one is running or nothing needs it.
  void sync_soon();

  const std::string& failure() const { return failure_; }  // empty: no failure
  bool needs_new_file() const { return sync_failed_; }

  std::uint64_t size() const { return size_; }  // of the file
  std::uint64_t position() const { return written_ + gathered_.size(); }
  std::uint64_t synced_position() const { return synced_; }
  std::size_t gathered_bytes() const { return gathered_.size(); }
  std::size_t gathered_memory() const { return heap_size(gathered_); }
  bool syncs() const { return syncing_ != 0; }
  std::uint64_t delayed_writes() const { return delayed_; }

  // Called when a sync in the other thread has ended.
  std::function<void()> on_synced;

 private:
  bool sync_here();
  bool has_to_wait(Sync sync, std::int64_t now_ms);
  void sync_there();
  void synced(std::uint64_t position, int error);

  asio::io_context& io_;
  Disk disk_;
  const std::string cpus_;
  std::shared_ptr<OwnedFd> file_;  // shared with a running sync
  std::string gathered_;
  int db_ = -1;  // database of the file's next request; -1: select one first
  std::uint64_t size_ = 0;
  std::uint64_t written_ = 0, synced_ = 0;  // positions
  std::uint64_t begun_at_ = 0;              // position of the file's first byte
  std::string failure_;
  bool sync_failed_ = false;
  int syncing_ = 0;                  // running syncs
  std::int64_t waits_since_ms_ = 0;  // since when a write waits for a sync; 0: none waits
  std::uint64_t delayed_ = 0;
  std::shared_ptr<LogWriter*> self_;           // empty once this object is gone
  std::unique_ptr<asio::thread_pool> thread_;  // one thread, made for the first sync
};

}  // namespace weir::kv::aof

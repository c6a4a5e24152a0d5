// The newest file of the log: effects become requests at its end.
//
// Effects are gathered in memory; commit() writes them, and the server calls it before any reply of the round
// leaves. With Sync::always the bytes are on the disk when commit() returns true, so one fsync serves all
// clients of the round. With Sync::everysec another thread syncs once a second while there is something to
// sync, and commit() does not write while it does so (a write would wait for the disk), for two seconds at
// most.
//
// Failures: while a write or an fsync has failed failure() says why, and commit() returns false. What could
// not be written stays in memory and is written by a later retry(). After a failed fsync nobody knows which
// bytes are on the disk, and a later fsync that succeeds says nothing about them (the system may have dropped
// them); so that failure stays until another file and a base hold all of it, which recovered() says.
//
// Positions count the bytes of the log over all its files since the server started, for those who wait until
// theirs are on the disk.
//
// Threading: the server's one thread; the syncing thread touches a descriptor and nothing else.
#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kv/effects/effects.hpp"
#include "kv/persistence/disk.hpp"
#include "transport/owned_fd.hpp"

namespace weir::kv::aof {

enum class Sync : int { always, everysec, no };

class LogWriter final : public EffectListener {
 public:
  LogWriter(asio::io_context& io, Disk disk);
  ~LogWriter() override;

  // Goes on in a file that holds `size` bytes. Nothing may be gathered: it belongs in the file before, which
  // the other thread syncs and closes.
  void begin(OwnedFd file, std::uint64_t size);
  // What came before the file is on the disk by other means, and no failure matters any more.
  void recovered();
  // Writes and syncs what is left, and closes the file.
  void end();

  void effect(int db, std::string_view request) override;

  bool anything_gathered() const { return !gathered_.empty(); }
  // Writes what is gathered, now; false: it failed.
  bool write();
  // The same, and syncs it with Sync::always.
  bool flush(Sync sync);
  // flush(), but with Sync::everysec not while the other thread syncs. False: it failed, or had failed
  // before.
  bool commit(Sync sync, std::int64_t now_ms);
  // Tries again what failed; to be called now and then.
  void retry(Sync sync);
  // Begins a sync in the other thread, unless one is under way or nothing is to be synced.
  void sync_soon();

  const std::string& failure() const { return failure_; }  // empty: all is well
  bool needs_new_file() const { return sync_failed_; }

  std::uint64_t size() const { return size_; }  // of the file
  std::uint64_t position() const { return written_ + gathered_.size(); }
  std::uint64_t synced_position() const { return synced_; }
  std::size_t gathered_bytes() const { return gathered_.size(); }
  bool syncs() const { return syncing_ != 0; }
  std::uint64_t delayed_writes() const { return delayed_; }

  // Called when a sync in the other thread is over.
  std::function<void()> on_synced;

 private:
  bool sync_here();
  bool has_to_wait(Sync sync, std::int64_t now_ms);
  void sync_there();
  void synced(std::uint64_t position, int error);

  asio::io_context& io_;
  Disk disk_;
  std::shared_ptr<OwnedFd> file_;  // shared with a sync under way
  std::string gathered_;
  int db_ = -1;  // that the file's next request acts on; -1: it says so first
  std::uint64_t size_ = 0;
  std::uint64_t written_ = 0, synced_ = 0;  // positions
  std::uint64_t begun_at_ = 0;              // the file's first byte
  std::string failure_;
  bool sync_failed_ = false;
  int syncing_ = 0;                  // syncs under way
  std::int64_t waits_since_ms_ = 0;  // for a sync, with a write; 0: it does not
  std::uint64_t delayed_ = 0;
  std::shared_ptr<LogWriter*> self_;           // empty once it is gone
  std::unique_ptr<asio::thread_pool> thread_;  // of one thread, made for the first sync there
};

}  // namespace weir::kv::aof

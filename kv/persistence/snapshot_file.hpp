// Writes a snapshot to the disk: a thread compresses the data, computes the checksum and writes.
//
// The bytes go to a temporary file beside the real one. When all are there the file is synced and renamed,
// and the folder is synced. So if the machine stops at any moment, a reader sees either the old or the new
// snapshot, complete. After an error the temporary file is removed and the old one stays.
//
// Threading: all calls come from one thread, which the object's own thread never blocks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "kv/core/disk.hpp"
#include "kv/rdb/encoded.hpp"

namespace weir::kv {

class SnapshotFile {
 public:
  struct Choice {
    std::string folder;
    std::string name;
    rdb::Compression compression;
    bool with_checksum;
    Disk disk;
    std::string cpus;  // for its thread; empty: those of the caller
  };
  using Outcome = std::expected<void, std::string>;

  // `ended` is called once, by the object's thread, with success or the error; by the constructor, if the
  // system gives no thread. It is not called after abandon().
  SnapshotFile(Choice choice, std::function<void(Outcome)> ended);
  ~SnapshotFile() { abandon(); }

  void add(rdb::Encoded chunk);
  // The last chunk was added.
  void finish();
  // Waits until waiting_bytes() is at most `bytes`, or writing has failed.
  void wait_until_below(std::size_t bytes);
  // Waits for the end.
  void join();
  // Stops, keeps the old file and removes the temporary one.
  void abandon();

  // The memory that unwritten data takes, with what the thread needs to write it.
  std::size_t waiting_bytes() const;
  std::uint64_t bytes_written() const;
  bool failed() const;

 private:
  void work();
  std::optional<rdb::Encoded> next_chunk(std::string& buffer);
  void wrote(std::size_t chunk_bytes, std::size_t bytes, const std::string& buffer);
  Outcome write_all(int fd);
  Outcome put_in_place(int fd);

  const Choice choice_;
  const std::string temporary_;
  std::function<void(Outcome)> ended_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<rdb::Encoded> chunks_;
  std::size_t chunk_bytes_ = 0;   // the memory of what was added and is not written
  std::size_t thread_bytes_ = 0;  // that of the thread, which finishes one chunk at a time
  std::uint64_t bytes_written_ = 0;
  bool all_added_ = false, abandoned_ = false, failed_ = false;
  std::thread thread_;
};

}  // namespace weir::kv

// A disk that takes no part of a snapshot until it is released, so that the snapshot stays under way.
#pragma once

#include <condition_variable>
#include <mutex>

#include "kv/core/disk.hpp"

namespace weir::kv::testing {

// Short writes, as of a log, succeed. The server's end waits for the release.
class StuckDisk {
 public:
  Disk disk() {
    Disk stuck;
    stuck.write = [this, write = stuck.write](int fd, const void* bytes, std::size_t size) {
      if (size > 64'000) {
        std::unique_lock lock(mutex_);
        ++stuck_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return released_; });
      }
      return write(fd, bytes, size);
    };
    return stuck;
  }
  void await_write() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stuck_ != 0; });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int stuck_ = 0;
  bool released_ = false;
};

}  // namespace weir::kv::testing

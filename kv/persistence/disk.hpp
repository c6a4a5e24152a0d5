// The calls through which data reaches the disk, in one place so that a test can make them fail.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <functional>

namespace weir::kv {

// As the system's: -1 and errno when they fail. They are called from several threads.
struct Disk {
  std::function<ssize_t(int fd, const void* bytes, std::size_t size)> write =
      [](int fd, const void* bytes, std::size_t size) { return ::write(fd, bytes, size); };
  std::function<int(int fd)> sync = [](int fd) { return ::fdatasync(fd); };
  // A folder's entries: what fdatasync() does for them differs between file systems.
  std::function<int(int fd)> sync_folder = [](int fd) { return ::fsync(fd); };
};

}  // namespace weir::kv

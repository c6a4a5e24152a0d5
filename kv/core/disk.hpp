// The calls that write data to the disk, gathered here so that a test can make them fail.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <functional>

namespace weir::kv {

// Like the system's calls: -1 with errno on failure. Several threads call them.
struct Disk {
  std::function<ssize_t(int fd, const void* bytes, std::size_t size)> write =
      [](int fd, const void* bytes, std::size_t size) { return ::write(fd, bytes, size); };
  std::function<int(int fd)> sync = [](int fd) { return ::fdatasync(fd); };
  // For a folder's entries: file systems differ in what fdatasync() does for these.
  std::function<int(int fd)> sync_folder = [](int fd) { return ::fsync(fd); };
};

}  // namespace weir::kv

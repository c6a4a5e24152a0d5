// A snapshot on its way to replicas that must know its length before its first byte.
//
// Nobody knows the length before all of it is encoded, and it may be larger than memory. So it waits in a
// file without a name, which is gone when this object is, or the process. Threading: none.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "kv/core/disk.hpp"
#include "transport/owned_fd.hpp"

namespace weir::kv::repl {

class SnapshotSpool {
 public:
  SnapshotSpool(const std::string& folder, Disk disk);

  void add(std::string_view bytes);
  std::uint64_t size() const { return size_; }
  bool read_all() const { return read_ == size_; }
  // The next bytes after those of the last call; they are valid until the next one.
  std::string_view read_some();
  // What went wrong first, for a user to read; empty: nothing has.
  const std::string& failure() const { return failure_; }

 private:
  void fail(const char* what);

  Disk disk_;
  OwnedFd file_;
  std::uint64_t size_ = 0;
  std::uint64_t read_ = 0;
  std::string some_;
  std::string failure_;
};

}  // namespace weir::kv::repl

// The shared files that back our registered regions, under the numbers by which neighbours ask for them.
//
// A file is exported while at least one region lies in it. Thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "link/memory/shared_backing.hpp"

namespace weir::verbs {

class WindowExports {
 public:
  struct Placed {
    std::uint32_t window = 0;  // 0: private memory
    std::uint64_t offset = 0;
  };
  // Takes a reference on the file behind that range, if there is one.
  Placed acquire(const link::MemoryRange& range, std::uint64_t addr);
  // True when that was the last region in the file: neighbours are to be told.
  bool release(std::uint32_t window);

  struct Export {
    link::UniqueFd fd;  // a duplicate, the caller's
    std::uint64_t bytes = 0;
  };
  std::optional<Export> open(std::uint32_t window);

 private:
  struct Entry {
    link::FileIdentity file;
    link::UniqueFd fd;
    int regions = 0;
  };
  std::mutex mutex_;
  std::map<std::uint32_t, Entry> entries_;
  link::BackingFiles files_;
  std::uint32_t next_ = 1;
};

}  // namespace weir::verbs

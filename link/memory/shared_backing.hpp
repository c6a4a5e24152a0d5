// Finds the shared file behind a range of this process's memory, if there is one.
//
// A memory region that lies in one MAP_SHARED mapping (a memfd, POSIX shared memory, a file in /dev/shm) can
// be mapped by a neighbour too, who then reads and writes it with plain copies. Nothing in the program has to
// know: what mmap was told the kernel still knows (memory_map.hpp), and the file is reopened through the
// program's own descriptor or its path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "link/memory/memory_map.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

struct MemoryRange {
  bool mapped = false;                      // every page of it is in some mapping of this process
  bool readable = false, writable = false;  // and all of it so by this process
  bool shared = false;  // and all of it in one shared mapping of one file, at consecutive offsets
  FileIdentity file;
  std::uint64_t file_offset = 0;
};

// What [addr, addr + length) is. length 0 counts as mapped.
MemoryRange look_up_memory(std::uint64_t addr, std::uint64_t length);

// Finds descriptors of files that are mapped. A process may have ten thousand descriptors, which take tens of
// milliseconds to look at, so it looks at all of them once per file at most and remembers what it found.
//
// Threading: one thread at a time.
class BackingFiles {
 public:
  // A descriptor of that file, opened for reading and writing: from the path in the mapping at `addr`, or a
  // duplicate of one that this process holds. Invalid if there is none: an unlinked file whose descriptor was
  // closed. A descriptor that the process gets later is then not found.
  UniqueFd open(const FileIdentity& file, std::uint64_t addr);

 private:
  static constexpr int no_descriptor = -1;
  struct Known {
    FileIdentity file;
    int fd = no_descriptor;
  };
  Known* find(const FileIdentity& file);

  std::array<Known, 64> known_{};
  std::size_t next_ = 0;  // the oldest
};

}  // namespace weir::link

// Finds the shared file behind a range of this process's memory, if there is one.
//
// A memory region that lies in one MAP_SHARED mapping (a memfd, POSIX shared memory, a file in /dev/shm) can
// be mapped by a neighbour too, who then reads and writes it with plain copies. Nothing in the program has to
// know: what mmap was told the kernel still knows (memory_map.hpp), and the file is reopened through the
// program's own descriptor or its path.
#pragma once

#include <cstdint>
#include <optional>

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

// A descriptor of that file, opened for reading and writing: a duplicate of one that this process holds, or
// from the path in the mapping. Invalid if there is none (an unlinked file whose descriptor was closed).
UniqueFd open_backing(const FileIdentity&, std::uint64_t addr);

}  // namespace weir::link

// What this process has mapped where, as the kernel tells in /proc/self/maps.
//
// The file's text has a line for each mapping, and reading it takes tens of microseconds, or milliseconds in
// a process with thousands of them. From Linux 6.11 on the mapping at one address can be asked for
// (PROCMAP_QUERY), which takes one or two however many there are; before that the text is read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace weir::link {

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct MappedRange {
  std::uint64_t start = 0, end = 0;
  std::uint64_t offset = 0;  // of its first byte in the file
  bool readable = false, writable = false, shared = false;
  FileIdentity file;  // inode 0: none
};

enum class MapSource {
  query,     // for each mapping
  text,      // all of it
  whatever,  // the first of them that this kernel has
};

// Visits what is mapped from `addr` to `end`, in order, up to the first hole or until visit() returns false.
// False: there is no such source here.
bool each_mapped_range(std::uint64_t addr, std::uint64_t end,
                       const std::function<bool(const MappedRange&)>& visit,
                       MapSource source = MapSource::whatever);

// The path of the file that is mapped at an address, with " (deleted)" if it has none any more; empty if
// there is no file.
std::string path_mapped_at(std::uint64_t addr, MapSource source = MapSource::whatever);

}  // namespace weir::link

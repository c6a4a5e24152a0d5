#include "link/memory/shared_backing.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "link/memory/populate.hpp"

namespace weir::link {
namespace {

bool is_file(int fd, const FileIdentity& file) {
  struct stat st{};
  return ::fstat(fd, &st) == 0 && FileIdentity{st.st_dev, st.st_ino} == file;
}

// Another thread may close `fd`, and its number may then be another file's: only the duplicate counts.
UniqueFd duplicate_of(int fd, const FileIdentity& file) {
  if (!is_file(fd, file))
    return {};  // closing another file's duplicate would release the program's locks on it
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy || !is_file(copy.get(), file) || (::fcntl(copy.get(), F_GETFL) & O_ACCMODE) != O_RDWR) return {};
  return copy;
}

struct Descriptor {
  int number = -1;
  UniqueFd copy;
};

// fstat() of the number rather than of the name in /proc, which takes several times as long.
Descriptor own_descriptor(const FileIdentity& file) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc/self/fd"), ::closedir);
  if (!dir) return {};
  while (const dirent* entry = ::readdir(dir.get())) {
    if (entry->d_name[0] == '.') continue;
    const int fd = std::atoi(entry->d_name);
    if (UniqueFd copy = duplicate_of(fd, file)) return {fd, std::move(copy)};
  }
  return {};
}

// Memory that fork() or shmat() shares has a file of the kernel's, which no descriptor names.
bool has_no_descriptor(const std::string& path) {
  return path == "/dev/zero (deleted)" || path.starts_with("/SYSV");
}

// Opening anything else, such as a device, may have effects.
UniqueFd open_regular(const std::string& path, const FileIdentity& file) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || FileIdentity{st.st_dev, st.st_ino} != file)
    return {};
  UniqueFd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (opened && !is_file(opened.get(), file)) opened.reset();
  return opened;
}

// Without /proc (or with that of another pid namespace) we ask the kernel whether memory is mapped. We ask
// for the rights of the first page only, because asking about a page creates it.
MemoryRange ask_kernel(std::uint64_t addr, std::uint64_t length) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t first = addr / page * page, pages = (addr + length - 1) / page - addr / page + 1;
  constexpr std::uint64_t pages_at_once = 4096;
  std::array<unsigned char, pages_at_once> resident;
  MemoryRange range;
  // NOLINTBEGIN(performance-no-int-to-ptr): the NIC names memory by integers
  for (std::uint64_t done = 0; done < pages; done += pages_at_once) {
    const std::uint64_t bytes = std::min(pages - done, pages_at_once) * page;
    if (::mincore(reinterpret_cast<void*>(first + done * page), bytes, resident.data()) != 0) return range;
  }
  const auto may = [&](int populate) {
    return ::madvise(reinterpret_cast<void*>(first), page, populate) == 0 || errno == EINVAL;
  };
  // NOLINTEND(performance-no-int-to-ptr)
  range.mapped = true;
  range.readable = may(populate_read);
  range.writable = may(populate_write);
  return range;
}

}  // namespace

MemoryRange look_up_memory(std::uint64_t addr, std::uint64_t length) {
  MemoryRange range;
  const std::uint64_t end = addr + length;
  if (length == 0)
    return {
        .mapped = true, .readable = true, .writable = true, .shared = false, .file = {}, .file_offset = 0};
  if (end < addr) return range;
  std::uint64_t covered = addr;
  bool one_file = true, readable = true, writable = true;
  const bool known = each_mapped_range(addr, end, [&](const MappedRange& m) {
    const std::uint64_t offset = m.offset + (covered - m.start);
    if (covered == addr) {
      range.file = m.file;
      range.file_offset = offset;
    }
    one_file = one_file && m.shared && m.file.inode != 0 && m.file == range.file &&
               offset == range.file_offset + (covered - addr);
    readable = readable && m.readable;
    writable = writable && m.writable;
    covered = m.end;
    return true;
  });
  if (!known) return ask_kernel(addr, length);
  range.mapped = covered >= end;
  range.readable = range.mapped && readable;
  range.writable = range.mapped && writable;
  range.shared = range.mapped && one_file;
  return range;
}

BackingFiles::Known* BackingFiles::find(const FileIdentity& file) {
  const auto found = std::ranges::find(known_, file, &Known::file);
  return found != known_.end() ? &*found : nullptr;
}

UniqueFd BackingFiles::open(const FileIdentity& file, std::uint64_t addr) {
  Known* known = find(file);
  if (known != nullptr && known->fd != no_descriptor)
    if (UniqueFd copy = duplicate_of(known->fd, file)) return copy;
  const std::string path = path_mapped_at(addr);
  if (has_no_descriptor(path)) return {};
  if (UniqueFd opened = open_regular(path, file)) return opened;
  if (known != nullptr && known->fd == no_descriptor) return {};
  Descriptor found = own_descriptor(file);
  if (known == nullptr) known = &known_[next_++ % known_.size()];
  *known = {file, found.number};
  return std::move(found.copy);
}

}  // namespace weir::link

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

#include "link/memory/populate.hpp"

namespace weir::link {
namespace {

bool is_file(int fd, const FileIdentity& file) {
  struct stat st{};
  return ::fstat(fd, &st) == 0 && FileIdentity{st.st_dev, st.st_ino} == file;
}

bool names_file(int directory, const char* name, const FileIdentity& file) {
  struct stat st{};
  return ::fstatat(directory, name, &st, 0) == 0 && FileIdentity{st.st_dev, st.st_ino} == file;
}

UniqueFd own_descriptor(const FileIdentity& file) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc/self/fd"), ::closedir);
  if (!dir) return {};
  while (const dirent* entry = ::readdir(dir.get())) {
    if (entry->d_name[0] == '.' || !names_file(::dirfd(dir.get()), entry->d_name, file)) continue;
    // Another thread may close it, and its number may then be another file's: only
    // the duplicate counts.
    UniqueFd copy(::fcntl(std::atoi(entry->d_name), F_DUPFD_CLOEXEC, 0));
    if (copy && is_file(copy.get(), file) && (::fcntl(copy.get(), F_GETFL) & O_ACCMODE) == O_RDWR)
      return copy;
  }
  return {};
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

UniqueFd open_backing(const FileIdentity& file, std::uint64_t addr) {
  if (UniqueFd fd = own_descriptor(file)) return fd;
  UniqueFd opened;
  if (const std::string path = path_mapped_at(addr); !path.empty())
    opened.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (opened && !is_file(opened.get(), file)) opened.reset();
  return opened;
}

}  // namespace weir::link

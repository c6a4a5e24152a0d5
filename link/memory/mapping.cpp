#include "link/memory/mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "link/memory/file_size_limit.hpp"

namespace weir::link {

std::optional<Mapping> Mapping::of_file(int fd, std::size_t bytes, Rights rights) {
  const int protection = rights == Rights::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* data = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED) return std::nullopt;
  // Rings and tables would only enlarge a core file.
  ::madvise(data, bytes, MADV_DONTDUMP);
  return Mapping(static_cast<std::byte*>(data), bytes);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

UniqueFd make_shared_file(const char* name, std::size_t bytes) {
  if (!file_may_have(bytes)) {
    errno = EFBIG;
    return {};
  }
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd && ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) fd.reset();
  // Nobody may shrink it: reading pages that are gone would kill the reader with SIGBUS.
  if (fd) ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  return fd;
}

// The seal needs Linux 5.1; the fallback needs /proc of our own pid namespace.
UniqueFd read_only_copy(int fd) {
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0) return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  return UniqueFd(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC));
}

std::size_t file_bytes(int fd) {
  struct stat st{};
  return ::fstat(fd, &st) == 0 ? static_cast<std::size_t>(st.st_size) : 0;
}

// Excludes hugetlbfs: its pages may run out, and may be larger than the end of a mapping.
bool never_shrinks(int fd) {
  struct stat st{};
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(fd, &st) == 0 &&
         st.st_blksize <= ::sysconf(_SC_PAGESIZE);
}

}  // namespace weir::link

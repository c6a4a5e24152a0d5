#include "cli/check/repair.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "transport/owned_fd.hpp"

namespace weir::check {
namespace {

// Copies from `offset` to the end. False, with errno: it failed.
bool copy_tail(int from, std::uint64_t offset, int to) {
  std::vector<char> block(std::size_t{1} << 16);
  for (;;) {
    ssize_t n = ::pread(from, block.data(), block.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    offset += static_cast<std::uint64_t>(n);
    for (const char* rest = block.data(); n > 0;) {
      const ssize_t written = ::write(to, rest, static_cast<std::size_t>(n));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      rest += written;
      n -= written;
    }
  }
}

// The system grants a lease only if nobody else has the file open. Without support for leases we go on.
bool somebody_has_it_open(int fd) {
  if (::fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
    ::fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
  }
  return errno == EAGAIN || errno == EBUSY;
}

// Writes the entries of its folder to the disk.
bool sync_folder_of(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const OwnedFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd && ::fsync(fd.get()) == 0;
}

}  // namespace

bool can_be_cut(const CheckedFile& file, bool last) {
  return last && file.log && (file.state == State::truncated || file.state == State::damaged);
}

std::expected<std::string, std::string> cut(const CheckedFile& file) {
  const auto failed = [&](const std::string& what) {
    return std::unexpected(
        fmt::format("cannot {}: {}; {} is as it was", what, std::strerror(errno), file.path));
  };
  const OwnedFd log(::open(file.path.c_str(), O_RDWR | O_CLOEXEC));
  if (!log) return failed("write " + file.path);
  if (somebody_has_it_open(log.get()))
    return std::unexpected(fmt::format("{} is open in another process: stop the server first", file.path));
  struct stat facts{};
  if (::fstat(log.get(), &facts) != 0) return failed("read " + file.path);
  if (static_cast<std::uint64_t>(facts.st_size) != file.size)
    return std::unexpected(fmt::format("{} has grown since it was read: stop the server first", file.path));
  const std::string beside = fmt::format("{}.cut-at-{}", file.path, file.whole_bytes);
  const OwnedFd tail(
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, facts.st_mode & 0666));
  if (!tail) return failed("write " + beside);
  if (!copy_tail(log.get(), file.whole_bytes, tail.get()) || ::fsync(tail.get()) != 0 ||
      !sync_folder_of(beside)) {
    const int why = std::exchange(errno, 0);
    ::unlink(beside.c_str());
    errno = why;
    return failed("keep what is cut in " + beside);
  }
  if (::ftruncate(log.get(), static_cast<off_t>(file.whole_bytes)) != 0 || ::fsync(log.get()) != 0)
    return failed("cut " + file.path);
  return beside;
}

}  // namespace weir::check

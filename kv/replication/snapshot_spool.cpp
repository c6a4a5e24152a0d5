#include "kv/replication/snapshot_spool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::kv::repl {

namespace {

constexpr std::size_t at_once = std::size_t{64} << 10;

int open_without_name(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  // EISDIR is how an old kernel, and EOPNOTSUPP how some file systems say that they have no such files.
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  const std::string name = folder + "/temp-" + std::to_string(::getpid()) + "-replicas.rdb";
  const int named = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

}  // namespace

SnapshotSpool::SnapshotSpool(const std::string& folder, Disk disk)
    : disk_(std::move(disk)), file_(open_without_name(folder.empty() ? "." : folder)) {
  if (!file_) fail("cannot make a file for the snapshot");
}

void SnapshotSpool::fail(const char* what) {
  if (failure_.empty()) failure_ = std::string(what) + ": " + std::strerror(errno);
}

void SnapshotSpool::add(std::string_view bytes) {
  while (failure_.empty() && !bytes.empty()) {
    const ssize_t n = disk_.write(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail("cannot write the snapshot");
    bytes.remove_prefix(static_cast<std::size_t>(n));
    size_ += static_cast<std::uint64_t>(n);
  }
}

std::string_view SnapshotSpool::read_some() {
  some_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(at_once, size_ - read_)));
  ssize_t n = 0;
  do {
    n = ::pread(file_.get(), some_.data(), some_.size(), static_cast<off_t>(read_));
  } while (n < 0 && errno == EINTR);
  if (n == 0 && !some_.empty()) errno = EIO;  // somebody has cut it
  if (n < 0 || (n == 0 && !some_.empty())) {
    fail("cannot read the snapshot");
    return {};
  }
  read_ += static_cast<std::uint64_t>(n);
  return std::string_view(some_).substr(0, static_cast<std::size_t>(n));
}

}  // namespace weir::kv::repl

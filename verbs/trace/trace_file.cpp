#include "verbs/trace/trace_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace weir::verbs {
namespace {

constexpr std::size_t buffer_bytes = 256 * 1024;
constexpr std::uint64_t near_limit_bytes = 16 * buffer_bytes;  // what several processes may write at once

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t took = ::write(fd, bytes.data(), bytes.size());
    if (took < 0 && errno == EINTR) continue;
    if (took <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(took));
  }
  return true;
}

}  // namespace

std::optional<TraceFile> TraceFile::open(const std::string& path, std::uint64_t limit_bytes,
                                         std::vector<std::byte> head) {
  const bool standard_error = path == "-";
  link::UniqueFd file(standard_error ? ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
                                     : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return std::nullopt;
  return TraceFile(std::move(file), standard_error ? UINT64_MAX : limit_bytes, std::move(head));
}

TraceFile::TraceFile(link::UniqueFd file, std::uint64_t limit_bytes, std::vector<std::byte> head)
    : file_(std::move(file)), limit_bytes_(limit_bytes), head_(std::move(head)) {
  buffer_.reserve(buffer_bytes);
}

void TraceFile::append(std::span<const std::byte> record) {
  if (buffer_.size() + record.size() > buffer_bytes) flush();
  buffer_.insert(buffer_.end(), record.begin(), record.end());
  ends_.push_back(buffer_.size());
}

void TraceFile::append_regardless(std::span<const std::byte> record) {
  flush();
  buffer_.assign(record.begin(), record.end());
  ends_.assign({buffer_.size()});
  write_out(true);
}

void TraceFile::flush() { write_out(false); }

std::size_t TraceFile::records_that_fit(std::uint64_t file_bytes) const {
  const std::uint64_t taken = file_bytes == 0 ? head_.size() : file_bytes;
  if (full_ || taken >= limit_bytes_) return 0;
  return static_cast<std::size_t>(std::ranges::upper_bound(ends_, limit_bytes_ - taken) - ends_.begin());
}

// Locks the file against other processes while it is empty, so that one head is written, and near its limit.
// In between, O_APPEND keeps records apart by itself, and a record costs two system calls instead of five.
void TraceFile::write_out(bool regardless) {
  if (buffer_.empty()) return;
  const int fd = file_.get();
  struct stat about{};
  const bool regular = ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  auto size = static_cast<std::uint64_t>(about.st_size);
  const bool locked = regular && (size == 0 || size + near_limit_bytes >= limit_bytes_);
  if (locked) {
    ::flock(fd, LOCK_EX);
    ::fstat(fd, &about);
    size = static_cast<std::uint64_t>(about.st_size);
  }
  const std::size_t fit = regardless || !regular ? ends_.size() : records_that_fit(size);
  bool written = fit != 0;
  if (written && regular && size == 0) written = write_all(fd, head_);
  if (written) written = write_all(fd, std::span(buffer_).first(ends_[fit - 1]));
  const std::size_t lost = ends_.size() - (written ? fit : 0);
  dropped_ += lost;
  full_ = full_ || lost != 0;
  if (locked) ::flock(fd, LOCK_UN);
  buffer_.clear();
  ends_.clear();
}

}  // namespace weir::verbs

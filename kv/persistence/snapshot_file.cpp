#include "kv/persistence/snapshot_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "kv/cpu_list.hpp"
#include "kv/rdb/checksum.hpp"
#include "kv/text/heap.hpp"

namespace weir::kv {

namespace {

// The kernel starts writing after so many bytes, so that the final fsync has little left to do.
constexpr std::uint64_t written_between_syncs = 4 << 20;
constexpr std::size_t buffer_kept = 1 << 20;

std::unexpected<std::string> system_error(const std::string& what) {
  return std::unexpected(what + ": " + std::strerror(errno));
}

SnapshotFile::Outcome write_bytes(const Disk& disk, int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t some = disk.write(fd, bytes.data(), bytes.size());
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) return system_error("cannot write the snapshot");
    bytes.remove_prefix(static_cast<std::size_t>(some));
  }
  return {};
}

std::string path_in(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + '/' + name;
}

}  // namespace

SnapshotFile::SnapshotFile(Choice choice, std::function<void(Outcome)> ended)
    : choice_(std::move(choice)),
      temporary_(path_in(choice_.folder, "temp-" + std::to_string(::getpid()) + ".rdb")),
      ended_(std::move(ended)) {
  // Signals belong to another thread, so this one blocks them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Outcome begun;
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& problem) {
    begun = std::unexpected(std::string("cannot start a thread for the snapshot: ") + problem.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (begun) return;
  failed_ = true;
  ended_(std::move(begun));
}

void SnapshotFile::add(rdb::Encoded chunk) {
  const std::lock_guard lock(mutex_);
  if (failed_ || abandoned_) return;
  chunk_bytes_ += chunk.memory();
  chunks_.push_back(std::move(chunk));
  changed_.notify_all();
}

void SnapshotFile::finish() {
  const std::lock_guard lock(mutex_);
  all_added_ = true;
  changed_.notify_all();
}

void SnapshotFile::wait_until_below(std::size_t bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return chunk_bytes_ + thread_bytes_ <= bytes || failed_; });
}

void SnapshotFile::join() {
  if (thread_.joinable()) thread_.join();
}

void SnapshotFile::abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    changed_.notify_all();
  }
  join();
}

std::size_t SnapshotFile::waiting_bytes() const {
  const std::lock_guard lock(mutex_);
  return chunk_bytes_ + thread_bytes_;
}

std::uint64_t SnapshotFile::bytes_written() const {
  const std::lock_guard lock(mutex_);
  return bytes_written_;
}

bool SnapshotFile::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

// Waits for it; nullopt: all were written, or the file is abandoned. What the thread will allocate for it
// counts from now on: for one huge value that is as much again, and nothing must be evicted for it.
std::optional<rdb::Encoded> SnapshotFile::next_chunk(std::string& buffer) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !chunks_.empty() || all_added_ || abandoned_; });
  if (chunks_.empty() || abandoned_) return std::nullopt;
  std::optional<rdb::Encoded> chunk = std::move(chunks_.front());
  chunks_.pop_front();
  thread_bytes_ = heap_size(buffer) + chunk->memory_to_finish(choice_.compression);
  return chunk;
}

void SnapshotFile::wrote(std::size_t chunk_bytes, std::size_t bytes, const std::string& buffer) {
  const std::lock_guard lock(mutex_);
  chunk_bytes_ -= chunk_bytes;
  thread_bytes_ = heap_size(buffer);
  bytes_written_ += bytes;
  changed_.notify_all();
}

SnapshotFile::Outcome SnapshotFile::write_all(int fd) {
  std::uint64_t sum = 0;
  std::uint64_t not_synced = 0;
  const auto write_out = [&](std::string_view bytes) -> Outcome {
    if (auto done = write_bytes(choice_.disk, fd, bytes); !done) return done;
    not_synced += bytes.size();
    if (not_synced < written_between_syncs) return {};
    not_synced = 0;
    return choice_.disk.sync(fd) == 0 ? Outcome() : system_error("cannot sync the snapshot");
  };
  std::string bytes;
  while (auto chunk = next_chunk(bytes)) {
    bytes.clear();
    chunk->finish(choice_.compression, bytes);
    if (choice_.with_checksum) sum = rdb::checksum(sum, bytes);
    if (auto done = write_out(bytes); !done) return done;
    const std::size_t chunk_bytes = chunk->memory();
    const std::size_t written = bytes.size();
    chunk.reset();
    if (bytes.capacity() > buffer_kept) std::string().swap(bytes);  // after a huge value
    wrote(chunk_bytes, written, bytes);
  }
  if (const std::lock_guard lock(mutex_); abandoned_) return std::unexpected("abandoned");
  const std::string end = rdb::end_of_file(sum, choice_.with_checksum);
  if (auto done = write_out(end); !done) return done;
  wrote(0, end.size(), bytes);
  return {};
}

SnapshotFile::Outcome SnapshotFile::put_in_place(int fd) {
  if (choice_.disk.sync(fd) != 0) return system_error("cannot sync the snapshot");
  const std::string path = path_in(choice_.folder, choice_.name);
  if (::rename(temporary_.c_str(), path.c_str()) != 0)
    return system_error("cannot rename the snapshot to " + path);
  const int folder =
      ::open(choice_.folder.empty() ? "." : choice_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return system_error("cannot open the folder of the snapshot");
  const bool synced = choice_.disk.sync_folder(folder) == 0;
  const int problem = errno;
  ::close(folder);
  errno = problem;
  if (!synced) return system_error("cannot sync the folder of the snapshot");
  return {};
}

void SnapshotFile::work() {
  if (!choice_.cpus.empty()) static_cast<void>(run_on_cpus(choice_.cpus));  // without, it is only elsewhere
  Outcome outcome;
  const int fd = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    outcome = system_error("cannot create " + temporary_);
  } else {
    try {
      outcome = write_all(fd);
      if (outcome) outcome = put_in_place(fd);
    } catch (const std::bad_alloc&) {
      outcome = std::unexpected("out of memory");
    }
    if (::close(fd) != 0 && outcome) outcome = system_error("cannot close the snapshot");
    if (!outcome) ::unlink(temporary_.c_str());
  }
  std::unique_lock lock(mutex_);
  failed_ = !outcome.has_value();
  chunks_.clear();
  chunk_bytes_ = thread_bytes_ = 0;
  changed_.notify_all();
  const bool told = !abandoned_;
  lock.unlock();
  if (told) ended_(std::move(outcome));
}

}  // namespace weir::kv

#include "kv/aof/log_writer.hpp"

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "kv/cpu_list.hpp"

namespace weir::kv::aof {

namespace {
// Limits after which a write no longer waits for a sync.
constexpr std::int64_t longest_wait_ms = 2000;
constexpr std::size_t most_waiting = std::size_t{64} << 20;
constexpr std::size_t kept_capacity = std::size_t{1} << 20;

// False: the system gives no thread now, and the server has to wait for the disk itself.
bool has_thread(std::unique_ptr<asio::thread_pool>& pool, const std::string& cpus) {
  try {
    if (pool != nullptr) return true;
    pool = std::make_unique<asio::thread_pool>(1);
    if (!cpus.empty()) asio::post(*pool, [cpus] { static_cast<void>(run_on_cpus(cpus)); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}
}  // namespace

LogWriter::LogWriter(asio::io_context& io, Disk disk, std::string cpus)
    : io_(io), disk_(std::move(disk)), cpus_(std::move(cpus)), self_(std::make_shared<LogWriter*>(this)) {}

LogWriter::~LogWriter() {
  end();
  *self_ = nullptr;
  if (thread_ != nullptr) thread_->join();
}

void LogWriter::begin(OwnedFd file, std::uint64_t size) {
  if (file_ != nullptr && synced_ != written_ && !sync_failed_) sync_there();
  file_ = std::make_shared<OwnedFd>(std::move(file));
  size_ = size;
  begun_at_ = written_;
  db_ = -1;
}

void LogWriter::recovered() {
  failure_.clear();
  sync_failed_ = false;
  synced_ = std::max(synced_, begun_at_);
}

void LogWriter::end() {
  if (file_ == nullptr) return;
  if (write()) sync_here();
  file_.reset();
  gathered_.clear();
  synced_ = written_;
  recovered();
}

void LogWriter::effect(int db, std::string_view request) {
  if (db != db_) {
    db_ = db;
    const std::array<RequestWord, 2> select{"SELECT", std::int64_t{db}};
    append_request(gathered_, select);
  }
  gathered_ += request;
}

bool LogWriter::commit(Sync sync, std::int64_t now_ms) {
  if (!failure_.empty()) return false;
  if (gathered_.empty() || file_ == nullptr || has_to_wait(sync, now_ms)) return true;
  return flush(sync);
}

bool LogWriter::flush(Sync sync) { return write() && (sync != Sync::always || sync_here()); }

bool LogWriter::has_to_wait(Sync sync, std::int64_t now_ms) {
  if (sync != Sync::everysec || syncing_ == 0 || gathered_.size() > most_waiting) return false;
  if (waits_since_ms_ == 0) waits_since_ms_ = now_ms;
  if (now_ms - waits_since_ms_ < longest_wait_ms) return true;
  ++delayed_;
  return false;
}

void LogWriter::retry(Sync sync) {
  if (failure_.empty() || sync_failed_ || !flush(sync)) return;
  failure_.clear();
}

// After a short write the rest is written as soon as possible.
bool LogWriter::write() {
  waits_since_ms_ = 0;
  std::string_view rest = gathered_;
  while (!rest.empty()) {
    const ssize_t n = disk_.write(file_->get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      failure_ = n == 0 ? "nothing was written" : std::strerror(errno);
      break;
    }
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  const std::size_t done = gathered_.size() - rest.size();
  size_ += done;
  written_ += done;
  gathered_.erase(0, done);
  if (gathered_.empty() && gathered_.capacity() > kept_capacity) gathered_.shrink_to_fit();
  return gathered_.empty();
}

bool LogWriter::sync_here() {
  if (disk_.sync(file_->get()) == 0) {
    synced_ = written_;
    return true;
  }
  failure_ = std::strerror(errno);
  sync_failed_ = true;
  return false;
}

void LogWriter::sync_soon() {
  if (syncing_ == 0 && synced_ != written_ && !sync_failed_ && file_ != nullptr) sync_there();
}

void LogWriter::sync_there() {
  ++syncing_;
  auto work = [self = self_, &io = io_, sync = disk_.sync, file = file_, position = written_] {
    const int error = sync(file->get()) == 0 ? 0 : errno;
    asio::post(io, [self, position, error] {
      if (*self != nullptr) (*self)->synced(position, error);
    });
  };
  has_thread(thread_, cpus_) ? asio::post(*thread_, std::move(work)) : work();
}

void LogWriter::synced(std::uint64_t position, int error) {
  --syncing_;
  if (error == 0) {
    synced_ = std::max(synced_, position);
  } else {
    failure_ = std::strerror(error);
    sync_failed_ = true;
  }
  if (on_synced) on_synced();
}

}  // namespace weir::kv::aof

#include "cli/check/checked_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "kv/aof/log_steps.hpp"
#include "kv/rdb/file_reader.hpp"
#include "kv/rdb/file_source.hpp"
#include "transport/owned_fd.hpp"

namespace weir::check {
namespace {

namespace rdb = kv::rdb;
using kv::aof::LogSteps;

// Counts records and drops them.
class Counts final : public rdb::Target {
 public:
  explicit Counts(SnapshotFound& found) : found_(found) {}

  void aux(std::string_view name, std::string_view value) override {
    if (name == "redis-ver" || name == "valkey-ver") found_.written_by = value;
  }
  std::string select(std::uint64_t database) override {
    database_ = database;
    return {};
  }
  void sizes(std::uint64_t, std::uint64_t) override {}
  std::string record(std::string_view, kv::Value, const rdb::About& about) override {
    ++found_.keys;
    used_.insert(database_);
    found_.databases = used_.size();
    if (about.expires_at_ms) ++found_.expiring;
    return {};
  }
  std::string function(std::string_view) override {
    ++found_.functions;
    return {};
  }
  bool go_on(std::uint64_t bytes_read) override {
    record_begins_ = bytes_read - 1;  // the record's type is one byte before
    return true;
  }
  std::uint64_t record_begins() const { return record_begins_; }

 private:
  SnapshotFound& found_;
  std::uint64_t database_ = 0;
  std::set<std::uint64_t> used_;  // databases with keys; a database may appear more than once
  std::uint64_t record_begins_ = 0;
};

bool begins_a_snapshot(std::string_view bytes) {
  return bytes.starts_with(rdb::magic) || bytes.starts_with("VALKEY");
}
bool begins_a_log(std::string_view bytes) { return bytes.starts_with('*') || bytes.starts_with('#'); }

class Checking {
 public:
  Checking(OwnedFd fd, CheckedFile& file) : fd_(std::move(fd)), file_(file) {}

  // The error: the file cannot be read.
  std::expected<void, int> check(Expected expected) {
    const std::string begin = bytes_at(0);
    if (expected == Expected::anything)
      expected = begins_a_snapshot(begin) ? Expected::snapshot
                 : begins_a_log(begin)    ? Expected::log
                                          : Expected::anything;
    if (expected == Expected::anything) {
      stop(State::damaged,
           file_.size == 0 ? "it is empty" : "it begins neither as a snapshot nor as a log does");
      return {};
    }
    if (expected == Expected::log && !begins_a_snapshot(begin)) return log(0);
    auto behind = snapshot();
    if (!behind) return std::unexpected(behind.error());
    if (!file_.whole() || (expected == Expected::snapshot && *behind == file_.size)) return {};
    if (expected == Expected::log || begins_a_log(bytes_at(*behind))) return log(*behind);
    file_.why = fmt::format("{} bytes follow its end and mean nothing", file_.size - *behind);
    return {};
  }

 private:
  void stop(State state, std::string why) {
    file_.state = state;
    file_.why = std::move(why);
  }

  std::string bytes_at(std::uint64_t offset) const {
    char bytes[6];
    const ssize_t n = ::pread(fd_.get(), bytes, sizeof bytes, static_cast<off_t>(offset));
    return {bytes, n < 0 ? 0 : static_cast<std::size_t>(n)};
  }

  // Returns the number of bytes that the snapshot takes.
  std::expected<std::uint64_t, int> snapshot() {
    file_.snapshot.emplace();
    const std::string header = (bytes_at(0) + bytes_at(6)).substr(0, rdb::header_size);
    const std::size_t digits = std::min(header.find_first_of("0123456789"), header.size());
    file_.snapshot->version = std::atoi(header.c_str() + digits);
    rdb::FileSource bytes(fd_.get());
    Counts counts(*file_.snapshot);
    const auto read = rdb::read_file(bytes, {}, rdb::Checked::yes, counts);
    if (bytes.problem() != 0) return std::unexpected(bytes.problem());
    if (read) return *read;
    using Kind = rdb::Error::Kind;
    const std::string where =
        counts.record_begins() == 0
            ? ""
            : fmt::format("; the last key that was begun begins at byte {}", counts.record_begins());
    if (read.error().kind == Kind::truncated) stop(State::truncated, "it ends too early" + where);
    if (read.error().kind == Kind::unsupported) stop(State::refused, read.error().what);
    if (file_.whole()) stop(State::damaged, read.error().what + where);
    return 0;
  }

  std::expected<void, int> log(std::uint64_t begin) {
    file_.log.emplace();
    ::lseek(fd_.get(), static_cast<off_t>(begin), SEEK_SET);
    rdb::FileSource bytes(fd_.get());
    LogSteps steps([&](char* place, std::size_t most) { return bytes.read(place, most); });
    while (file_.whole()) {
      const LogSteps::Next next = steps.next();
      if (bytes.problem() != 0) return std::unexpected(bytes.problem());
      if (next == LogSteps::Next::end) break;
      if (next != LogSteps::Next::part) take(steps, next, begin);
    }
    file_.whole_bytes = begin + steps.whole_bytes();
    return {};
  }

  void take(const LogSteps& steps, LogSteps::Next next, std::uint64_t begin) {
    const auto from = [&] { return fmt::format("from byte {} on", begin + steps.whole_bytes()); };
    if (next == LogSteps::Next::truncated)
      return stop(State::truncated,
                  fmt::format("it ends in the middle of a request or transaction: {} bytes, {}",
                              file_.size - begin - steps.whole_bytes(), from()));
    if (next == LogSteps::Next::wrong)
      return stop(State::damaged, fmt::format("no request, or none that can stand there: {} bytes, {}",
                                              file_.size - begin - steps.whole_bytes(), from()));
    if (steps.was_transaction()) ++file_.log->transactions;
    steps.each([&](kv::Arguments words) {
      if (kv::aof::logged_command(words) == nullptr) {
        stop(State::refused,
             kv::aof::unknown_in_log(words) + ", at byte " + std::to_string(begin + steps.whole_bytes()));
        return false;
      }
      ++file_.log->requests;
      return true;
    });
  }

  OwnedFd fd_;
  CheckedFile& file_;
};

}  // namespace

std::expected<CheckedFile, std::string> check_file(const std::string& path, Expected expected) {
  const auto cannot = [&](int error) {
    return std::unexpected(fmt::format("cannot read {}: {}", path, std::strerror(error)));
  };
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return cannot(errno);
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return cannot(errno);
  if (!S_ISREG(facts.st_mode)) return std::unexpected(fmt::format("cannot read {}: it is no file", path));
  CheckedFile file;
  file.path = path;
  file.size = static_cast<std::uint64_t>(facts.st_size);
  if (auto done = Checking(std::move(fd), file).check(expected); !done) return cannot(done.error());
  return file;
}

}  // namespace weir::check

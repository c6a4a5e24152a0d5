// A log in its own folder, on a disk that fails when a test says so.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "kv/aof/log_reader.hpp"
#include "tests/kv/recorded_effects.hpp"

namespace weir::kv::testing {

// A disk whose calls fail, or write less than requested, while told to. It records how much of each file was
// synced, which is what a machine would find there after a power failure.
class BadDisk {
 public:
  std::atomic<int> write_error = 0, sync_error = 0;
  std::atomic<std::size_t> most = SIZE_MAX;  // the most that one write takes
  std::atomic<std::uint64_t> syncs = 0;

  Disk disk() {
    Disk calls;
    calls.write = [this](int fd, const void* bytes, std::size_t size) -> ssize_t {
      if (write_error != 0) return errno = write_error, -1;
      struct stat before{};
      ::fstat(fd, &before);
      if (before.st_size == 0) {  // the inode may have belonged to another file
        const std::lock_guard lock(mutex_);
        synced_.erase(before.st_ino);
      }
      return ::write(fd, bytes, std::min(size, most.load()));
    };
    calls.sync = [this](int fd) {
      ++syncs;
      if (sync_error != 0) return errno = sync_error, -1;
      struct stat before{};
      ::fstat(fd, &before);  // bytes written meanwhile may not be synced
      if (::fdatasync(fd) != 0) return -1;
      const std::lock_guard lock(mutex_);
      synced_[before.st_ino] = before.st_size;
      return 0;
    };
    calls.sync_folder = [this](int fd) {
      if (sync_error != 0) return errno = sync_error, -1;
      return ::fsync(fd);
    };
    return calls;
  }

  // Copies a folder as it would be after a power failure: each file as it was last synced.
  void copy_what_is_synced(const std::string& from, const std::string& to) const {
    std::filesystem::create_directories(to);
    for (const auto& entry : std::filesystem::directory_iterator(from)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("temp-")) continue;  // a snapshot's thread may be renaming it
      const std::string target = to + '/' + name;
      std::filesystem::copy_file(entry.path(), target);
      struct stat facts{};
      ::stat(entry.path().c_str(), &facts);
      const std::lock_guard lock(mutex_);
      const auto synced = synced_.find(facts.st_ino);
      const auto size = synced == synced_.end() ? 0 : static_cast<std::uintmax_t>(synced->second);
      std::filesystem::resize_file(target, std::min(size, std::filesystem::file_size(target)));
    }
  }

 private:
  mutable std::mutex mutex_;
  std::map<ino_t, off_t> synced_;
};

inline Settings keeping(const ScratchFolder& folder, aof::Sync sync = aof::Sync::always) {
  Settings settings = quiet_settings();
  settings.appendonly = true;
  settings.appendfsync = static_cast<int>(sync);
  settings.dir = folder.path();
  return settings;
}

inline std::string log_file(const ScratchFolder& folder, const std::string& name) {
  return folder.file("appendonlydir/appendonly.aof." + name);
}

inline std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The contents of a log file, with a semicolon after each request.
inline std::string requests_in(const std::string& path) {
  std::string text = text_of(path);
  std::string_view rest = text;
  aof::LogReader reader([&](char* place, std::size_t most) {
    const std::size_t n = rest.copy(place, most);
    rest.remove_prefix(n);
    return n;
  });
  std::string requests;
  while (reader.next() == aof::LogReader::Next::request) {
    for (const Argument& word : reader.arguments()) requests.append(word.text).append(" ");
    requests.back() = ';';
  }
  return requests;
}

// Advances the clock and runs what the log's timer does once a second.
inline void tick_log(RunningServer& server, std::int64_t ms = 1000) {
  server.advance_ms(ms);
  server.run([](Server& s) {
    s.refresh_time();
    s.append_only->tick();
    s.end_round();
  });
}

inline void await_rewrite(RunningServer& server) {
  while (server.run([](Server& s) { return s.append_only->rewriting(); })) std::this_thread::yield();
}

}  // namespace weir::kv::testing

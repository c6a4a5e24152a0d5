// The log's files: their folder, and the manifest that lists them.
//
// Each change replaces the manifest in one step, so the log on the disk is always whole. A log that begins
// with existing data lacks its base at first. Until a base is adopted, changes to the list stay in memory,
// and the previous log remains the one on the disk.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "kv/aof/folder.hpp"
#include "kv/aof/manifest.hpp"

namespace weir::kv {
struct Settings;
}

namespace weir::kv::aof {

class LogFiles {
 public:
  // Opens the folder that the settings name and reads the manifest, if there is one. A single-file log of
  // Redis before version 7 becomes the base. The error is for a user to read.
  static std::expected<LogFiles, std::string> open(const Settings& settings, const Disk& disk);

  const Folder& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  bool empty() const { return !manifest_.base && manifest_.increments.empty(); }

  void begin_without_base() { lacks_base_ = true; }
  bool lacks_base() const { return lacks_base_; }

  std::expected<OwnedFd, std::string> open_newest() const;
  // Creates a file after the newest one.
  std::expected<OwnedFd, std::string> begin_increment();
  // The name of the next base to be written.
  std::string next_base() const;
  // The base is on the disk: the log is now that base and the newest increment; older files are deleted.
  std::expected<void, std::string> adopt_base();
  void remove_history();

  // Of all files except the newest.
  std::uint64_t size_of_closed() const;

 private:
  LogFiles(Folder folder, std::string first_name)
      : folder_(std::move(folder)), first_name_(std::move(first_name)) {}
  std::expected<void, std::string> read_manifest();
  std::expected<void, std::string> take_old_file(const std::string& parent);
  std::expected<void, std::string> store(Manifest manifest);
  std::string name(std::int64_t sequence, std::string_view kind) const;
  std::string manifest_name() const { return first_name_ + ".manifest"; }

  Folder folder_;
  std::string first_name_;  // prefix of the names of its files
  Manifest manifest_;       // as on the disk, unless the base is missing
  bool lacks_base_ = false;
};

}  // namespace weir::kv::aof

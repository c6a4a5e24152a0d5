// The files of the log: their folder, and the manifest that lists them.
//
// The manifest is replaced in one step at each change, so the log on the disk is whole at any time. A log
// that is begun while there is data already lacks its base: until that is adopted changes of the list stay
// in memory, and what was on the disk before stays the log there.
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
  // Opens the folder that the settings name and reads the manifest there, if any. A log of one file, as Redis
  // had it before version 7, becomes the base. The error is fit to show a user.
  static std::expected<LogFiles, std::string> open(const Settings& settings, const Disk& disk);

  const Folder& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  bool empty() const { return !manifest_.base && manifest_.increments.empty(); }

  void begin_without_base() { lacks_base_ = true; }
  bool lacks_base() const { return lacks_base_; }

  std::expected<OwnedFd, std::string> open_newest() const;
  // A new file, which follows the newest.
  std::expected<OwnedFd, std::string> begin_increment();
  // The name for a base that is about to be written.
  std::string next_base() const;
  // It is on the disk: the log is that base and the newest increment, and what came before is deleted.
  std::expected<void, std::string> adopt_base();
  void remove_history();

  // Of all files but the newest.
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
  std::string first_name_;  // how the names of its files begin
  Manifest manifest_;       // as it is on the disk, unless the base is lacking
  bool lacks_base_ = false;
};

}  // namespace weir::kv::aof

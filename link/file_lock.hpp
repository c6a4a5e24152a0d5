// An exclusive lock between processes: flock on a file of the runtime directory.
//
// It ends with its holder, killed or not. It is given up explicitly, because a child forked meanwhile holds
// the same open file, and merely closing ours would leave the lock with it. Taking it blocks, at most
// `limit`.
#pragma once

#include <chrono>
#include <string>

#include "link/same_host.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

// What helps where a runtime directory cannot be used.
inline constexpr const char* elsewhere = "set WEIR_RUNTIME_DIR to a directory of your own";

class FileLock {
 public:
  static constexpr std::chrono::milliseconds limit{5000};
  // The error's code when the file or its directory was removed while we waited: open the directory anew.
  static constexpr auto vanished = std::errc::resource_unavailable_try_again;

  // `name` in the directory `directory_fd`, whose path `shown` appears in errors.
  static Result<FileLock> take(int directory_fd, const char* name, const std::string& shown);

  FileLock(FileLock&&) = default;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

}  // namespace weir::link

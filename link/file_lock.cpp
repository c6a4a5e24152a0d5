#include "link/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "link/error.hpp"

namespace weir::link {
Result<FileLock> FileLock::take(int directory_fd, const char* name, const std::string& shown) {
  const auto give_up = Clock::now() + limit;
  const std::string path = shown + "/" + name;
  UniqueFd file(::openat(directory_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file && errno == ENOENT) return failure(vanished, shown + " was removed meanwhile");
  if (!file) return failure_errno(errno, "cannot create " + path, elsewhere);
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return failure_errno(errno, "cannot lock " + path, elsewhere);
    if (Clock::now() >= give_up) {
      return failure(std::errc::timed_out, "another process holds " + path +
                                               " and does not give it up; see which with fuser, or " +
                                               elsewhere);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  FileLock lock(std::move(file));
  struct stat held{};
  if (::fstat(lock.file_.get(), &held) != 0 || held.st_nlink == 0) {
    return failure(vanished, path + " was removed meanwhile");
  }
  return lock;
}

FileLock::~FileLock() {
  if (file_) ::flock(file_.get(), LOCK_UN);
}

}  // namespace weir::link

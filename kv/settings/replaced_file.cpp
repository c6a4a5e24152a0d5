#include "kv/settings/replaced_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "transport/owned_fd.hpp"

namespace weir::kv {

namespace {

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::fsync(fd) == 0;
}

}  // namespace

std::expected<void, std::string> replace_file(const std::string& path, std::string_view text,
                                              const std::string& what) {
  const std::string fresh = path + ".tmp-" + std::to_string(::getpid());
  const auto failed = [&what](const char* step) {
    return std::unexpected(std::string(step) + ' ' + what + ": " + std::strerror(errno));
  };
  {
    const OwnedFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (fd.get() < 0) return failed("opening a new file for");
    struct stat old{};
    const bool kept = ::stat(path.c_str(), &old) != 0 || ::fchmod(fd.get(), old.st_mode & 07777) == 0;
    if (!kept || !write_whole(fd.get(), text)) {
      auto error = failed("writing");
      ::unlink(fresh.c_str());
      return error;
    }
  }
  if (::rename(fresh.c_str(), path.c_str()) == 0) return {};
  auto error = failed("renaming the new file to");
  ::unlink(fresh.c_str());
  return error;
}

}  // namespace weir::kv

#include "kv/aof/folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "kv/aof/manifest.hpp"

namespace weir::kv::aof {

namespace {
constexpr mode_t file_mode = 0644;
constexpr mode_t folder_mode = 0755;
}  // namespace

std::expected<Folder, std::string> Folder::open(const std::string& parent, const std::string& name,
                                                Disk disk) {
  const std::string path = parent + '/' + name;
  const auto wrong = [&](const char* why) {
    return std::unexpected("cannot keep the log in " + name + ": " + why + ". Check --appenddirname.");
  };
  if (!is_plain_name(name)) return wrong("it must be a name without a path");
  if (::mkdir(path.c_str(), folder_mode) != 0 && errno != EEXIST) return wrong(std::strerror(errno));
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return wrong(std::strerror(errno));
  return Folder(path, std::move(fd), std::move(disk));
}

std::unexpected<std::string> Folder::failed(std::string_view what, const std::string& name) const {
  const int error = errno;
  return std::unexpected("cannot " + std::string(what) + ' ' + path_ + '/' + name + ": " +
                         std::strerror(error));
}

std::expected<OwnedFd, std::string> Folder::open(const std::string& name, int flags,
                                                 std::string_view what) const {
  if (!is_plain_name(name)) {
    errno = EINVAL;
    return failed(what, name);
  }
  OwnedFd fd(::openat(fd_.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, file_mode));
  if (!fd) return failed(what, name);
  return std::expected<OwnedFd, std::string>(std::move(fd));
}

bool Folder::has(const std::string& name) const {
  return is_plain_name(name) && ::faccessat(fd_.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

std::uint64_t Folder::size(const std::string& name) const {
  struct stat facts{};
  if (!is_plain_name(name) || ::fstatat(fd_.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return static_cast<std::uint64_t>(facts.st_size);
}

std::expected<OwnedFd, std::string> Folder::open_to_read(const std::string& name) const {
  return open(name, O_RDONLY, "read");
}
std::expected<OwnedFd, std::string> Folder::open_to_append(const std::string& name) const {
  return open(name, O_WRONLY | O_APPEND | O_CREAT, "write");
}
std::expected<OwnedFd, std::string> Folder::make(const std::string& name) const {
  return open(name, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC, "write");
}

std::expected<std::string, std::string> Folder::read(const std::string& name, std::size_t most) const {
  auto file = open_to_read(name);
  if (!file) return std::unexpected(std::move(file.error()));
  std::string text(most + 1, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = ::read(file->get(), text.data() + got, text.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("read", name);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  if (got > most) {
    errno = EFBIG;
    return failed("read", name);
  }
  text.resize(got);
  return text;
}

std::expected<void, std::string> Folder::replace(const std::string& name, std::string_view contents) const {
  const std::string beside = "temp-" + name;
  auto file = make(beside);
  if (!file) return std::unexpected(std::move(file.error()));
  auto done = write(*file, beside, contents);
  if (done) done = sync(*file, beside);
  if (done) done = rename(beside, name);
  if (!done) remove(beside);
  return done;
}

std::expected<void, std::string> Folder::rename(const std::string& from, const std::string& to) const {
  if (!is_plain_name(from) || !is_plain_name(to) ||
      ::renameat(fd_.get(), from.c_str(), fd_.get(), to.c_str()) != 0)
    return failed("rename to", to);
  return sync_entries(to);
}

std::expected<void, std::string> Folder::take(const std::string& path, const std::string& name) const {
  if (!is_plain_name(name) || ::renameat(AT_FDCWD, path.c_str(), fd_.get(), name.c_str()) != 0)
    return failed("move the old log to", name);
  return sync_entries(name);
}

std::expected<void, std::string> Folder::sync_entries(const std::string& name) const {
  if (disk_.sync_folder(fd_.get()) != 0) return failed("sync", name);
  return {};
}

std::expected<void, std::string> Folder::cut(const std::string& name, std::uint64_t size) const {
  auto file = open(name, O_WRONLY, "cut");
  if (!file) return std::unexpected(std::move(file.error()));
  if (::ftruncate(file->get(), static_cast<off_t>(size)) != 0) return failed("cut", name);
  return sync(*file, name);
}

void Folder::remove(const std::string& name) const {
  if (is_plain_name(name)) ::unlinkat(fd_.get(), name.c_str(), 0);
}

std::expected<void, std::string> Folder::write(const OwnedFd& file, const std::string& name,
                                               std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = disk_.write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("write", name);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

std::expected<void, std::string> Folder::sync(const OwnedFd& file, const std::string& name) const {
  if (disk_.sync(file.get()) != 0) return failed("sync", name);
  return {};
}

bool is_file(const std::string& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

}  // namespace weir::kv::aof

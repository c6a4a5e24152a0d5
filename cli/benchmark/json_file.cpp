#include "cli/benchmark/json_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace weir::benchmark {
namespace {

std::unexpected<client::Error> cannot_write(const std::string& name) {
  return client::fail(client::ErrorKind::usage, "cannot write " + name + ": " + std::strerror(errno));
}

}  // namespace

client::Result<JsonFile> JsonFile::open(const std::string& name) {
  JsonFile file;
  file.name_ = name;
  if (name.empty() || name == "-") return file;
  file.fd_ = OwnedFd(::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file.fd_) return cannot_write(name);
  return file;
}

client::Result<void> JsonFile::write(const std::string& text) const {
  if (name_ == "-") std::fputs(text.c_str(), stdout);
  if (!fd_) return {};
  // Anything but a regular file (a pipe, /dev/null) has nothing to replace and refuses.
  if (::lseek(fd_.get(), 0, SEEK_SET) == 0 && ::ftruncate(fd_.get(), 0) != 0 && errno != EINVAL)
    return cannot_write(name_);
  for (std::string_view rest = text; !rest.empty();) {
    const auto written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot_write(name_);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace weir::benchmark

#include "link/secret_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "link/unique_fd.hpp"

namespace weir::link {
namespace {

constexpr std::size_t min_bytes = 16, max_bytes = 4096;

std::expected<std::string, std::string> contents_of(int file) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return std::unexpected(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return std::unexpected("is no file");
  if (status.st_uid != ::geteuid() && status.st_uid != 0) return std::unexpected("belongs to another user");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return std::unexpected("can be read by others; it needs mode 600");
  std::string bytes(max_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size < min_bytes || size > max_bytes) return std::unexpected("has to have 16 to 4096 bytes");
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::expected<std::string, std::string> read_secret_file(const std::string& path) {
  // A pipe would keep us waiting for its writer.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return std::unexpected(path + ": " + std::strerror(errno));
  auto bytes = contents_of(file.get());
  if (!bytes) return std::unexpected(path + " " + bytes.error());
  return bytes;
}

}  // namespace weir::link

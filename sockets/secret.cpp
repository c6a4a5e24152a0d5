#include "sockets/secret.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace weir::sockets {
namespace {

constexpr std::size_t least_bytes_of_secret = 16, most_bytes_of_secret = 4096;

std::expected<std::string, std::string> contents_of(int file) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return std::unexpected(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return std::unexpected("is no file");
  if (status.st_uid != ::geteuid() && status.st_uid != 0) return std::unexpected("belongs to another user");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return std::unexpected("can be read by others; it needs mode 600");
  std::string bytes(most_bytes_of_secret + 1, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size < least_bytes_of_secret || size > most_bytes_of_secret)
    return std::unexpected("has to have 16 to 4096 bytes");
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::expected<hash::SipKey, std::string> read_secret(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return std::unexpected(path + ": " + std::strerror(errno));
  const auto bytes = contents_of(file);
  ::close(file);
  if (!bytes) return std::unexpected(path + " " + bytes.error());
  return hash::SipKey{.first = hash::siphash({.first = 1, .second = 0}, *bytes),
                      .second = hash::siphash({.first = 2, .second = 0}, *bytes)};
}

}  // namespace weir::sockets

#include "verbs/ibv/command_fd.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

namespace weir::verbs {
namespace {

constexpr std::uint64_t magic = 0x57454952'434d4446;  // "WEIRCMDF"

struct Content {
  std::uint64_t magic;
  std::uint64_t owner;
  std::int64_t pid;  // a forked child shares its parent's secret, but not its NIC
  std::uint64_t device;
};

// Tells apart two processes that used the same pid one after the other.
std::uint64_t own_secret() {
  static const std::uint64_t secret = [] {
    std::random_device entropy;
    return std::uint64_t{entropy()} << 32 | entropy();
  }();
  return secret;
}

}  // namespace

int make_command_fd(std::size_t device) {
  const int fd = ::memfd_create("weir-device", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  const Content content{magic, own_secret(), ::getpid(), device};
  const bool written = ::pwrite(fd, &content, sizeof content, 0) == sizeof content;
  if (written && ::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
    return fd;
  ::close(fd);
  return -1;
}

std::size_t device_of_command_fd(int fd) {
  Content content{};
  return ::pread(fd, &content, sizeof content, 0) == sizeof content ? content.device : 0;
}

bool same_command_file(int a, int b) {
  struct stat of_a{};
  struct stat of_b{};
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

CommandFdOf whose_command_fd(int fd) {
  Content content{};
  if (::pread(fd, &content, sizeof content, 0) != sizeof content || content.magic != magic)
    return CommandFdOf::nobody;
  const bool ours = content.owner == own_secret() && content.pid == ::getpid();
  return ours ? CommandFdOf::this_process : CommandFdOf::another_process;
}

}  // namespace weir::verbs

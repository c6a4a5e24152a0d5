#include "verbs/ibv/xrc_domains.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "link/file_lock.hpp"

namespace weir::verbs {
namespace {

// Two files, because closing any descriptor of a file drops all record locks on it.
constexpr const char* holders_name = "xrc-domains";
constexpr const char* lock_name = "xrc-lock";

// Odd: named by a file. Two files get one identity only by an unlikely coincidence of device numbers.
std::uint64_t identity_of(const struct stat& file) {
  return (static_cast<std::uint64_t>(file.st_ino) ^ static_cast<std::uint64_t>(file.st_dev) << 40) << 1 | 1;
}

std::optional<std::uint64_t> draw_private_identity() {
  std::uint64_t drawn = 0;
  while ((drawn & ~std::uint64_t{1}) == 0)
    if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return std::nullopt;
  return drawn & ~std::uint64_t{1};
}

struct flock byte_of(std::uint64_t identity, short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>((identity >> 1) & ((std::uint64_t{1} << 62) - 1));
  lock.l_len = 1;
  return lock;
}

std::nullopt_t fails(int error) {
  errno = error;
  return std::nullopt;
}

}  // namespace

XrcDomains& XrcDomains::of_this_process() {
  static auto* const all = new XrcDomains;
  return *all;
}

std::optional<std::uint64_t> XrcDomains::open(const ibv_xrcd_init_attr& init, const std::string& directory) {
  const std::lock_guard lock(mutex_);
  forget_parents();
  if (init.fd == -1) return draw_private_identity();
  struct stat file{};
  if (::fstat(init.fd, &file) != 0) return std::nullopt;  // errno: EBADF
  return open_named(identity_of(file), init.oflags, directory);
}

// The manual page names no errors, so these are the ones of the kernel's ib_uverbs_open_xrcd.
std::optional<std::uint64_t> XrcDomains::open_named(std::uint64_t identity, int oflags,
                                                    const std::string& directory) {
  const link::UniqueFd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return std::nullopt;
  // The lock lets only one of two processes succeed that create the domain with O_EXCL.
  const auto alone = link::FileLock::take(folder.get(), lock_name, directory);
  if (!alone) return fails(static_cast<int>(alone.error().code));
  if (!holders_)
    holders_.reset(::openat(folder.get(), holders_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!holders_) return std::nullopt;
  const bool ours = open_.contains(identity);
  struct flock held = byte_of(identity, F_WRLCK);
  if (!ours && ::fcntl(holders_.get(), F_GETLK, &held) != 0) return std::nullopt;
  const bool exists = ours || held.l_type != F_UNLCK;
  if (exists && (oflags & O_EXCL)) return fails(EINVAL);
  if (!exists && !(oflags & O_CREAT)) return fails(EAGAIN);
  struct flock share = byte_of(identity, F_RDLCK);
  if (!ours && ::fcntl(holders_.get(), F_SETLK, &share) != 0) return std::nullopt;
  ++open_[identity];
  return identity;
}

void XrcDomains::close(std::uint64_t identity) {
  const std::lock_guard lock(mutex_);
  forget_parents();
  const auto found = open_.find(identity);
  if (found == open_.end() || --found->second != 0) return;
  open_.erase(found);
  struct flock free = byte_of(identity, F_UNLCK);
  (void)::fcntl(holders_.get(), F_SETLK, &free);
}

// A forked child does not inherit record locks, so its parent's domains are not open in it.
void XrcDomains::forget_parents() {
  if (owner_ == ::getpid()) return;
  owner_ = ::getpid();
  open_.clear();
  holders_.reset();
}

}  // namespace weir::verbs

#include "link/slot_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>

#include "link/abstract_socket.hpp"
#include "link/error.hpp"
#include "link/file_lock.hpp"
#include "link/network_namespace.hpp"

namespace weir::link {
namespace {

constexpr const char* lock_name = "lock";
constexpr const char* young_name = "young";  // a socket between bind and link; used under the lock only
constexpr const char* slot_prefix = "slot-";
constexpr int listen_backlog = 1024;
constexpr auto vanished = FileLock::vanished;

std::string slot_name(Slot slot) {
  char name[16];
  std::snprintf(name, sizeof name, "%s%04u", slot_prefix, slot);
  return name;
}

std::optional<Slot> slot_of(std::string_view name) {
  if (!name.starts_with(slot_prefix)) return std::nullopt;
  name.remove_prefix(std::strlen(slot_prefix));
  unsigned number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size() || number == 0 || number >= max_slots) {
    return std::nullopt;
  }
  return static_cast<Slot>(number);
}

std::optional<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

UniqueFd unix_socket(int type) { return UniqueFd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

// False: it cannot be read now. A process that may open no more files must not take it for empty.
template <class Visit>
bool for_each_entry(int directory, Visit visit) {
  const int again = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return false;
  DIR* stream = ::fdopendir(again);
  if (stream == nullptr) {
    ::close(again);
    return false;
  }
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !visit(entry->d_name)) break;
  }
  ::closedir(stream);
  return true;
}

// The runtime directory above a path that names its folder for one network namespace; empty: none is named.
std::string above_network_folder(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return {};
  return path.compare(slash + 1, network_folder_prefix.size(), network_folder_prefix) == 0
             ? path.substr(0, slash)
             : std::string{};
}

void remove_folder(int directory, const char* name) {
  const UniqueFd below(::openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!below) return;
  for_each_entry(below.get(), [&](const char* inside) {
    if (::unlinkat(below.get(), inside, 0) != 0 && errno == EISDIR) remove_folder(below.get(), inside);
    return true;
  });
  ::unlinkat(directory, name, AT_REMOVEDIR);
}

std::string why_without_number() {
  std::string what =
      "the names of all slots in this network namespace are taken; programs of this user reach this one by "
      "RDMA, and programs of other users cannot";
  const auto holder = largest_other_holder(::geteuid(), slot_name_prefix);
  if (!holder) return what;
  const std::string process = holder->pid != 0 ? ", process " + std::to_string(holder->pid) : "";
  return what + ": user " + std::to_string(holder->user) + process + " holds " +
         std::to_string(holder->names) + " of them; end that process, or ask its user to";
}

}  // namespace

Result<SlotDirectory> SlotDirectory::open(const std::string& path) {
  if (const auto above = above_network_folder(path); !above.empty()) {
    if (const auto opened = open(above); !opened) return std::unexpected(opened.error());
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    if (errno == ENOENT && !above_network_folder(path).empty())
      return failure(vanished, path + " was removed meanwhile");
    return failure_errno(errno, "cannot create the runtime directory " + path, elsewhere);
  }
  SlotDirectory opened;
  opened.path_ = path;
  opened.directory_.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened.directory_) {
    if (errno == ENOENT) return failure(vanished, path + " was removed meanwhile");
    return failure_errno(errno, "cannot open the runtime directory " + path, elsewhere);
  }
  struct stat status{};
  if (::fstat(opened.directory_.get(), &status) != 0) return failure_errno(errno, "cannot stat " + path);
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return failure(std::errc::permission_denied,
                   "the runtime directory " + path +
                       (status.st_uid != ::geteuid() ? " belongs to user " + std::to_string(status.st_uid)
                                                     : " may be written by other users; chmod 700 " + path) +
                       "; " + elsewhere);
  }
  return opened;
}

std::string SlotDirectory::address_of(const std::string& name) const {
  const std::string handle = "/proc/self/fd/" + std::to_string(directory_.get());
  return (::access(handle.c_str(), F_OK) == 0 ? handle : path_) + "/" + name;
}

bool SlotDirectory::out_of_sight() const {
  return ::access(address_of(".").c_str(), F_OK) != 0 && errno == ENOENT;
}

// A datagram socket cannot connect to ours. If there is a socket behind the name, the kernel says so with
// EPROTOTYPE; if its process is gone, it says ECONNREFUSED. So a probe does not disturb a living process.
SlotDirectory::Occupant SlotDirectory::probe(Slot slot) const {
  const auto address = unix_address(address_of(slot_name(slot)));
  if (!address) {
    errno = ENAMETOOLONG;
    return Occupant::unknown;
  }
  const UniqueFd probe = unix_socket(SOCK_DGRAM);
  if (!probe) return Occupant::unknown;
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0) {
    return Occupant::living;
  }
  if (errno == ENOENT) return Occupant::nobody;
  return errno == ECONNREFUSED ? Occupant::dead : Occupant::living;
}

void SlotDirectory::sweep_dead() const {
  for_each_entry(directory_.get(), [&](const char* name) {
    const auto slot = slot_of(name);
    if (slot && probe(*slot) == Occupant::dead) ::unlinkat(directory_.get(), name, 0);
    return true;
  });
}

std::vector<Slot> SlotDirectory::named() const {
  struct stat status{};
  timespec now{};
  // Read before the names, so a change during the reading also changes the time.
  const bool known = ::fstat(directory_.get(), &status) == 0 && ::clock_gettime(CLOCK_REALTIME, &now) == 0;
  const timespec& changed = status.st_mtim;
  const std::lock_guard lock(names_->mutex);
  if (known && names_->settled && changed.tv_sec == names_->changed.tv_sec &&
      changed.tv_nsec == names_->changed.tv_nsec)
    return names_->slots;
  std::vector<Slot> slots;
  const bool read = for_each_entry(directory_.get(), [&](const char* name) {
    if (const auto slot = slot_of(name)) slots.push_back(*slot);
    return true;
  });
  if (!read) return names_->slots;  // as far as we know
  names_->slots = std::move(slots);
  names_->changed = changed;
  // File systems take their time stamps from a clock that may stand still for 10 ms.
  names_->settled = known && now.tv_sec - changed.tv_sec >= 2;
  return names_->slots;
}

bool SlotDirectory::anyone_living() const {
  bool living = false;
  const bool read = for_each_entry(directory_.get(), [&](const char* name) {
    const auto slot = slot_of(name);
    if (!slot) return true;
    const auto occupant = probe(*slot);
    living = occupant == Occupant::living || occupant == Occupant::unknown;
    return !living;
  });
  return living || !read;
}

void SlotDirectory::remove_everything() const {
  struct stat mine{}, named{};
  // Somebody may have moved or removed our directory by hand, and its path may now be another's.
  const bool still_ours = ::fstat(directory_.get(), &mine) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
                          mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
  if (!still_ours) return;
  for_each_entry(directory_.get(), [&](const char* name) {
    const bool stays =
        std::strcmp(name, lock_name) == 0 || std::string_view(name).starts_with(lasting_prefix);
    if (!stays) ::unlinkat(directory_.get(), name, 0);
    return true;
  });
  remove_folder(directory_.get(), registered_folder);
  ::unlinkat(directory_.get(), lock_name, 0);
  ::rmdir(path_.c_str());
  if (const auto above = above_network_folder(path_); !above.empty())
    ::rmdir(above.c_str());  // if that folder was the last
}

Result<UniqueFd> SlotDirectory::listen_as(Slot slot) const {
  const std::string name = slot_name(slot);
  const auto address = unix_address(address_of(young_name));
  if (!address) {
    return failure(std::errc::filename_too_long,
                   "the path " + path_ + " is too long for a socket and /proc is not mounted; " + elsewhere);
  }
  UniqueFd listener = unix_socket(SOCK_SEQPACKET);
  if (!listener) return failure_errno(errno, "cannot open a unix socket");
  ::unlinkat(directory_.get(), young_name, 0);  // a killed process left it: we hold the lock, so it is free
  const std::string cause = "cannot create a socket in " + path_;
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return failure_errno(errno, cause, elsewhere);
  }
  int error = ::listen(listener.get(), listen_backlog) != 0 ? errno : 0;
  if (error == 0 && ::linkat(directory_.get(), young_name, directory_.get(), name.c_str(), 0) != 0)
    error = errno;
  ::unlinkat(directory_.get(), young_name, 0);
  if (error != 0) return failure_errno(error, cause, elsewhere);
  return listener;
}

// Under the lock. The error is errc::address_in_use if no slot is free.
Result<SlotDirectory::Taken> SlotDirectory::take_slot(pid_t pid, Numbers numbers) const {
  for (unsigned step = 0; step < max_slots - 1U; ++step) {
    const auto slot = static_cast<Slot>(1 + (static_cast<unsigned>(pid) + step) % (max_slots - 1U));
    const auto occupant = probe(slot);
    if (occupant == Occupant::living) continue;
    if (occupant == Occupant::unknown)
      return failure_errno(errno, "cannot look at the slots of " + path_, elsewhere);
    UniqueFd number;
    if (numbers == Numbers::held) {
      auto held = hold_name(name_of_slot(slot));
      if (!held && held.error() == EADDRINUSE) continue;
      if (held) number = std::move(*held);
    }
    auto listener = listen_as(slot);
    if (listener) return Taken{slot, std::move(*listener), std::move(number)};
    if (listener.error().code != std::errc::file_exists) return std::unexpected(listener.error());
  }
  return failure(std::errc::address_in_use, "all " + std::to_string(max_slots - 1) + " slots of " + path_ +
                                                " are taken by running processes; " + elsewhere);
}

Result<SlotDirectory::Claim> SlotDirectory::claim(const std::string& path, pid_t pid) {
  // The directory can vanish between opening and locking it whenever another process is the last to leave.
  for (int attempt = 0; attempt < 100; ++attempt) {
    auto directory = open(path);
    if (!directory) {
      if (directory.error().code == vanished) continue;
      return std::unexpected(directory.error());
    }
    auto lock = FileLock::take(directory->directory_.get(), lock_name, path);
    if (!lock) {
      if (lock.error().code == FileLock::vanished) continue;
      return std::unexpected(lock.error());
    }
    directory->sweep_dead();
    std::string warning;
    auto taken = directory->take_slot(pid, Numbers::held);
    if (!taken && taken.error().code == std::errc::address_in_use) {
      // Any user may hold the numbers' names. Our own processes meet in the directory and need none.
      taken = directory->take_slot(pid, Numbers::none);
      if (taken) warning = why_without_number();
    }
    if (!taken) return std::unexpected(taken.error());
    return Claim{std::move(*directory), taken->slot, std::move(taken->listener), std::move(taken->number),
                 std::move(warning)};
  }
  return failure(vanished, "the runtime directory " + path + " keeps being removed; " + elsewhere);
}

bool SlotDirectory::has_name(Slot slot) const {
  struct stat status{};
  return ::fstatat(directory_.get(), slot_name(slot).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 ||
         errno != ENOENT;
}

Result<UniqueFd> SlotDirectory::restore(Slot slot) {
  auto fresh = open(path_);
  if (!fresh) return std::unexpected(fresh.error());
  auto lock = FileLock::take(fresh->directory_.get(), lock_name, path_);
  if (!lock) return std::unexpected(lock.error());
  fresh->sweep_dead();
  auto listener = fresh->listen_as(slot);
  // Other threads may be using the descriptor, so it changes in place.
  if (listener && ::dup3(fresh->directory_.get(), directory_.get(), O_CLOEXEC) < 0)
    return failure_errno(errno, "cannot keep " + path_ + " open");
  const std::lock_guard names(names_->mutex);
  names_->settled = false;
  return listener;
}

void SlotDirectory::release(Slot slot) {
  if (!directory_) return;
  auto lock = FileLock::take(directory_.get(), lock_name, path_);
  ::unlinkat(directory_.get(), slot_name(slot).c_str(), 0);  // ours, with or without the lock
  if (lock && !anyone_living()) remove_everything();
}

Result<UniqueFd> SlotDirectory::dial(Slot slot) const {
  const auto address = unix_address(address_of(slot_name(slot)));
  if (!address)
    return failure(std::errc::filename_too_long, "the path " + path_ + " is too long; " + elsewhere);
  UniqueFd socket = unix_socket(SOCK_SEQPACKET);
  if (!socket) return failure_errno(errno, "cannot open a unix socket");
  const std::string where = "slot " + std::to_string(slot) + " of " + path_;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) {
      return failure(std::errc::no_such_device_or_address, "no process lives in " + where);
    }
    return failure_errno(errno, "cannot connect to " + where);
  }
  return socket;
}

}  // namespace weir::link

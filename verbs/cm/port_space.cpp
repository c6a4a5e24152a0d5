#include "verbs/cm/port_space.hpp"

#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "link/error.hpp"
#include "link/random_number.hpp"
#include "verbs/cm/ephemeral_ports.hpp"

namespace weir::cm {

const char* name_of_space(std::uint16_t port_space) {
  switch (port_space) {
    case RDMA_PS_UDP:
      return "udp";
    case RDMA_PS_IPOIB:
      return "ipoib";
    case RDMA_PS_IB:
      return "ib";
    default:
      return "tcp";
  }
}

namespace {

constexpr const char* lock_name = "cm-lock";

// The content of a file. It is written in one call; any other content belongs to nobody.
struct Record {
  std::uint32_t magic;
  std::uint16_t slot;
  std::uint16_t zero;
  std::uint64_t incarnation;
  std::uint8_t reuse_address;
  std::uint8_t v6_only;
  std::uint8_t listening;
  std::uint8_t zeros[5];
};
static_assert(sizeof(Record) == 24);
constexpr std::uint32_t record_magic = 0x504d4357;  // "WCMP"

std::string folder_of(std::uint16_t port_space, std::uint16_t port) {
  return std::string(name_of_space(port_space)) + "-" + std::to_string(port);
}

std::string name_of(std::uint16_t port_space, const Endpoint& endpoint) {
  std::string name = folder_of(port_space, endpoint.port) + "/";
  for (const auto byte : endpoint.ip) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    name += digits;
  }
  return name;
}

std::optional<IpBytes> ip_of(const std::string& name) {
  IpBytes ip;
  const auto slash = name.rfind('/');
  if (slash == std::string::npos || name.size() - slash - 1 != 2 * ip.size()) return std::nullopt;
  for (std::size_t i = 0; i < ip.size(); ++i) {
    unsigned byte;
    if (std::sscanf(name.c_str() + slash + 1 + 2 * i, "%2x", &byte) != 1) return std::nullopt;
    ip[i] = static_cast<std::uint8_t>(byte);
  }
  return ip;
}

bool covers(const Endpoint& wildcard, const Sharing& sharing, const Endpoint& other) {
  if (wildcard.ip == any_v4().ip) return other.is_v4();
  if (wildcard.ip == any_v6().ip) return !other.is_v4() || !sharing.v6_only;
  return wildcard.same_ip(other);
}

std::string slot_path(const std::string& directory, link::Slot slot) {
  char name[16];
  std::snprintf(name, sizeof name, "/slot-%04u", slot);
  return directory + name;
}

}  // namespace

PortSpace::PortSpace(std::string directory, PortOwner self, Lives lives)
    : directory_(std::move(directory)), self_(self), lives_(std::move(lives)) {
  if (left_without_slot().empty()) return;
  if (const auto held = lock()) sweep();
}

std::string PortSpace::path_of(const std::string& name) const {
  return directory_ + "/" + link::registered_folder + "/" + name;
}

link::Result<link::FileLock> PortSpace::lock() const {
  const link::UniqueFd directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return link::failure_errno(errno, "cannot open " + directory_);
  return link::FileLock::take(directory.get(), lock_name, directory_);
}

std::expected<PortSpace::Entry, int> PortSpace::read(const std::string& name) const {
  constexpr int nobodys = 0;
  const link::UniqueFd file(::open(path_of(name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) return std::unexpected(errno);
  Record record{};
  const auto ip = ip_of(name);
  if (!file || !ip || ::read(file.get(), &record, sizeof record) != sizeof record)
    return std::unexpected(nobodys);
  if (record.magic != record_magic || record.slot == 0 || record.slot >= link::max_slots)
    return std::unexpected(nobodys);
  Entry entry{name, {}, {record.slot, record.incarnation}, {}};
  entry.endpoint.ip = *ip;
  entry.sharing = {record.reuse_address != 0, record.v6_only != 0};
  entry.listening = record.listening != 0;
  return entry;
}

// Written under another name first, so that a look-up, which takes no lock, never sees half a record.
std::expected<PortSpace::FileId, int> PortSpace::write(const Entry& entry) const {
  const Record record{.magic = record_magic,
                      .slot = entry.owner.slot,
                      .zero = 0,
                      .incarnation = entry.owner.incarnation,
                      .reuse_address = entry.sharing.reuse_address,
                      .v6_only = entry.sharing.v6_only,
                      .listening = entry.listening,
                      .zeros = {}};
  const std::string young = path_of("young"), path = path_of(entry.name);
  for (const std::string& folder : {path_of(""), path.substr(0, path.rfind('/'))})
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return std::unexpected(errno);
  link::UniqueFd file(::open(young.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return std::unexpected(errno);
  if (::write(file.get(), &record, sizeof record) != sizeof record)
    return std::unexpected(errno != 0 ? errno : ENOSPC);
  struct stat written;
  if (::fstat(file.get(), &written) != 0) return std::unexpected(errno);
  if (::rename(young.c_str(), path.c_str()) != 0) return std::unexpected(errno);
  return FileId{written.st_dev, written.st_ino};
}

bool PortSpace::is_at(const std::string& name, const FileId& file) const {
  struct stat there;
  return ::lstat(path_of(name).c_str(), &there) == 0 && FileId{there.st_dev, there.st_ino} == file;
}

void PortSpace::remove(const std::string& name) const {
  const std::string path = path_of(name);
  ::unlink(path.c_str());
  ::rmdir(path.substr(0, path.rfind('/')).c_str());  // if it was the last of that port
}

// Returns an errno if the folder cannot be read now. A missing folder is empty.
template <class Visit>
int PortSpace::for_each_in(const std::string& folder, Visit visit) const {
  std::error_code error;
  for (std::filesystem::directory_iterator at(path_of(folder), error), end; !error && at != end;
       at.increment(error))
    visit(at->path().filename().string());
  return error == std::errc::no_such_file_or_directory ? 0 : error.value();
}

// Files of processes whose slot is gone too, for any port.
std::vector<std::string> PortSpace::left_without_slot() {
  std::vector<std::string> names;
  binds_before_sweep_ = 0;
  for_each_in("", [&](const std::string& folder) {
    for_each_in(folder, [&](const std::string& file) {
      ++binds_before_sweep_;
      const std::string name = folder + "/" + file;
      const auto entry = read(name);
      if (entry && ::access(slot_path(directory_, entry->owner.slot).c_str(), F_OK) != 0)
        names.push_back(name);
    });
  });
  return names;
}

void PortSpace::sweep() {
  for (const auto& name : left_without_slot()) remove(name);
}

std::expected<Binding, int> PortSpace::bind_port(std::uint16_t port_space, const Endpoint& endpoint,
                                                 Sharing sharing) {
  const std::string mine = name_of(port_space, endpoint);
  std::vector<std::string> stale;
  int error = 0;
  bool listening = false;
  const std::string folder = folder_of(port_space, endpoint.port);
  const int unread = for_each_in(folder, [&](const std::string& file) {
    const std::string name = folder + "/" + file;
    const auto entry = read(name);
    if (!entry && entry.error() != 0) {
      error = entry.error();
      return;
    }
    if (!entry || (entry->owner.slot == self_.slot && entry->owner != self_)) {
      stale.push_back(name);
      return;
    }
    const bool overlap =
        covers(entry->endpoint, entry->sharing, endpoint) || covers(endpoint, sharing, entry->endpoint);
    if (!overlap) return;
    if (entry->owner == self_ && entry->sharing.reuse_address && sharing.reuse_address) {
      if (name == mine) listening = entry->listening;
    } else if (entry->owner != self_ && !lives_(entry->owner)) {
      stale.push_back(name);
    } else {
      error = EADDRINUSE;
    }
  });
  for (const auto& name : stale) remove(name);
  if (error == 0) error = unread;
  if (error != 0) return std::unexpected(error);
  const std::lock_guard guard(mutex_);
  const Entry entry{mine, endpoint, self_, sharing, listening};
  const auto written = write(entry);
  if (!written) return std::unexpected(written.error());
  Held& held = held_[mine];
  held.entry = entry;
  held.file = *written;
  ++held.holders;
  return Binding{port_space, endpoint, sharing};
}

std::expected<Binding, int> PortSpace::bind(std::uint16_t port_space, Endpoint endpoint, Sharing sharing) {
  const auto held = lock();
  if (!held) return std::unexpected(static_cast<int>(held.error().code));
  if (binds_before_sweep_ == 0)
    sweep();
  else
    --binds_before_sweep_;
  if (endpoint.port != 0) return bind_port(port_space, endpoint, sharing);
  const auto start = static_cast<unsigned>(link::random_number());
  for (unsigned i = 0; i < ephemeral_count; ++i) {
    endpoint.port = static_cast<std::uint16_t>(first_ephemeral + (start + i) % ephemeral_count);
    auto bound = bind_port(port_space, endpoint, {.reuse_address = false, .v6_only = sharing.v6_only});
    if (bound || bound.error() != EADDRINUSE) return bound;
  }
  return std::unexpected(EADDRNOTAVAIL);
}

int PortSpace::listening(const Binding& binding) {
  const auto held = lock();
  if (!held) return static_cast<int>(held.error().code);
  auto entry = read(name_of(binding.port_space, binding.endpoint));
  if (!entry)
    return entry.error() != 0 ? entry.error() : EADDRNOTAVAIL;  // somebody has cleared the directory
  if (entry->owner != self_) return EADDRINUSE;
  entry->listening = true;
  const std::lock_guard guard(mutex_);
  const auto written = write(*entry);
  if (!written) return written.error();
  if (const auto mine = held_.find(entry->name); mine != held_.end()) {
    mine->second.entry = *entry;
    mine->second.file = *written;
  }
  return 0;
}

// A file of another owner stays: its process was quicker to bind the port in the new directory.
void PortSpace::restore() {
  const auto locked = lock();
  if (!locked) return;
  const std::lock_guard guard(mutex_);
  for (auto& [name, held] : held_) {
    if (const auto there = read(name); there || there.error() != 0) continue;
    if (const auto written = write(held.entry)) held.file = *written;
  }
}

// Works without a descriptor for the lock or for reading the file: a file that we wrote is ours.
void PortSpace::release(const Binding& binding) {
  const auto held = lock();
  const std::lock_guard guard(mutex_);
  const auto mine = held_.find(name_of(binding.port_space, binding.endpoint));
  if (mine == held_.end() || --mine->second.holders > 0) return;
  const auto [name, last] = *mine;
  held_.erase(mine);
  const auto entry = read(name);
  const bool ours = entry ? entry->owner == self_ : entry.error() != 0 && is_at(name, last.file);
  if (!ours) return;
  if (held)
    remove(name);
  else
    ::unlink(path_of(name).c_str());  // keep the folder: another process may be about to write there
}

std::optional<PortOwner> PortSpace::find(std::uint16_t port_space, const Endpoint& destination) const {
  const auto entry = find_entry(port_space, destination);
  return entry ? std::optional(entry->owner) : std::nullopt;
}

std::optional<PortOwner> PortSpace::find_listener(std::uint16_t port_space,
                                                  const Endpoint& destination) const {
  const auto entry = find_entry(port_space, destination);
  return entry && entry->listening ? std::optional(entry->owner) : std::nullopt;
}

std::optional<PortSpace::Entry> PortSpace::find_entry(std::uint16_t port_space,
                                                      const Endpoint& destination) const {
  Endpoint wildcard_v4 = any_v4(), wildcard_v6 = any_v6();
  wildcard_v4.port = wildcard_v6.port = destination.port;
  for (const Endpoint& candidate : {destination, wildcard_v4, wildcard_v6}) {
    const auto entry = read(name_of(port_space, candidate));
    if (entry && covers(entry->endpoint, entry->sharing, destination)) return *entry;
  }
  return std::nullopt;
}

}  // namespace weir::cm

#include "twin/hosts/folder.hpp"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>

#include "twin/hosts/network_plan.hpp"

namespace weir::hosts {
namespace {

bool is_own_folder(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
         (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// The folder that has a folder for each network of this user. All hosts see the machine's files but for
// /dev/shm, which is each host's own.
std::string folder_of_all() {
  if (const char* const told = std::getenv("WEIR_RUNTIME_DIR"); told != nullptr && *told != '\0')
    if (!std::string_view(told).starts_with("/dev/shm")) return std::string(told) + "/fabrics";
  const std::string run = "/run/user/" + std::to_string(::geteuid());
  if (is_own_folder(run)) return run + "/weir-fabrics";
  return "/tmp/weir-fabrics-" + std::to_string(::geteuid());
}

Result<sockaddr_un> address_in(const std::string& folder) {
  const std::string path = folder + "/keeper";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return failure(Cause::invalid_plan,
                   "the path " + path + " is too long for a unix socket; use a shorter name");
  path.copy(address.sun_path, path.size());
  return address;
}

Result<void> make_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) {
    if (is_own_folder(folder)) return {};
    return failure(Cause::system, folder + " is not a folder of yours alone; remove it, or have it removed");
  }
  return failure_errno(errno, "cannot make " + folder);
}

}  // namespace

Result<std::string> folder_of(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  if (!is_name(name))
    return failure(
        Cause::invalid_plan,
        "'" + name +
            "' cannot be a network's name: that has up to 63 letters, digits and '-', '_', '.', and "
            "begins with a letter or digit");
  const std::string all = folder_of_all();
  struct stat found{};
  if (::lstat(all.c_str(), &found) == 0 && !is_own_folder(all))
    return failure(Cause::system, all + " is not a folder of yours alone; remove it, or have it removed");
  return all + "/" + name;
}

std::vector<std::string> running_networks() {
  std::vector<std::string> names, left;
  const std::string all = folder_of_all();
  if (!is_own_folder(all)) return names;
  struct Closer {
    void operator()(DIR* folder) const { ::closedir(folder); }
  };
  const std::unique_ptr<DIR, Closer> folder(::opendir(all.c_str()));
  if (!folder) return names;
  while (const dirent* const entry = ::readdir(folder.get())) {
    if (!is_name(entry->d_name)) continue;
    const std::string path = all + "/" + entry->d_name;
    (connect_to_keeper(path) ? names : left).emplace_back(entry->d_name);
  }
  for (const std::string& name : left) vacate(all + "/" + name);
  return names;
}

Result<link::UniqueFd> occupy(const std::string& folder) {
  if (connect_to_keeper(folder))
    return failure(Cause::exists, "there is a network " + folder.substr(folder.rfind('/') + 1) + " already");
  vacate(folder);
  const std::string above = folder.substr(0, folder.rfind('/'));
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(above).parent_path(), ignored);
  if (const auto made = make_folder(above); !made) return std::unexpected(made.error());
  if (const auto made = make_folder(folder); !made) return std::unexpected(made.error());
  const auto address = address_in(folder);
  if (!address) return std::unexpected(address.error());
  link::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return failure_errno(errno, "a unix socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0)
    return failure_errno(errno, "cannot listen at " + std::string(address->sun_path));
  return socket;
}

Result<link::UniqueFd> connect_to_keeper(const std::string& folder) {
  const auto address = address_in(folder);
  if (!address) return std::unexpected(address.error());
  link::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return failure_errno(errno, "a unix socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return failure(Cause::no_network, "there is no network " + folder.substr(folder.rfind('/') + 1) +
                                          "; weir fabric list shows those there are");
  return socket;
}

void vacate(const std::string& folder) noexcept {
  ::unlink((folder + "/keeper").c_str());
  ::unlink(hosts_file_in(folder).c_str());
  ::unlink(topology_file_in(folder).c_str());
  ::rmdir(folder.c_str());
  // The last network takes the folder of all with it.
  if (const std::string above = folder.substr(0, folder.rfind('/')); above == folder_of_all())
    ::rmdir(above.c_str());
}

std::string hosts_file_in(const std::string& folder) { return folder + "/hosts"; }
std::string topology_file_in(const std::string& folder) { return folder + "/topology"; }

}  // namespace weir::hosts

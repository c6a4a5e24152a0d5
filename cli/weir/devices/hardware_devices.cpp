// Hardware devices as the kernel describes them in sysfs, without loading any library: the system's
// libibverbs and Weir's have the same soname, and this process may need Weir's.
#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "cli/weir/devices/device_list.hpp"

namespace weir::command {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

unsigned number_of(const fs::path& path) {
  unsigned number = 0;
  const auto name = path.filename().string();
  std::from_chars(name.data(), name.data() + name.size(), number);
  return number;
}

// In numeric order, because sysfs lists entries in no order.
std::vector<fs::path> entries_of(const fs::path& directory) {
  std::error_code none;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(directory, none)) entries.push_back(entry.path());
  std::ranges::sort(entries, [](const fs::path& a, const fs::path& b) {
    return std::pair(number_of(a), a.string()) < std::pair(number_of(b), b.string());
  });
  return entries;
}

std::string shortened_gid(const std::string& long_form) {
  unsigned char raw[16];
  return ::inet_pton(AF_INET6, long_form.c_str(), raw) == 1 ? gid_text(raw) : long_form;
}

DevicePort port_at(const fs::path& directory) {
  DevicePort port{
      number_of(directory), first_line(directory / "state"), first_line(directory / "link_layer"), {}};
  // "4: ACTIVE"
  if (const auto colon = port.state.find(": "); colon != std::string::npos) port.state.erase(0, colon + 2);
  for (const auto& file : entries_of(directory / "gids")) {
    const auto gid = first_line(file);
    if (gid.empty() || gid.find_first_not_of("0:") == std::string::npos) continue;
    port.gids.push_back(
        {number_of(file), shortened_gid(gid), first_line(directory / "gid_attrs/types" / file.filename())});
  }
  return port;
}

}  // namespace

std::string gid_text(const unsigned char (&raw)[16]) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET6, raw, text, sizeof text);
  return text;
}

std::vector<Device> hardware_devices(const std::string& sysfs_root) {
  std::vector<Device> devices;
  for (const auto& directory : entries_of(fs::path(sysfs_root) / "class/infiniband")) {
    Device device{directory.filename().string(), false, {}};
    for (const auto& port : entries_of(directory / "ports")) device.ports.push_back(port_at(port));
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace weir::command

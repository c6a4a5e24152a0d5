#include "verbs/ibv/device_options.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

namespace weir::verbs {
namespace {

template <class Take>
void for_each_word(std::string_view list, Take take) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (end != 0) take(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

// A name becomes a directory in sysfs and must fit into ibv_device.name.
bool name_valid(std::string_view name) {
  return name.size() < IBV_SYSFS_NAME_MAX &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
}

}  // namespace

std::optional<ibv_gid> gid_of_address(std::string_view address) {
  const std::string text(address);
  ibv_gid gid{};
  if (::inet_pton(AF_INET6, text.c_str(), gid.raw) == 1) return gid;
  gid.raw[10] = gid.raw[11] = 0xff;
  if (::inet_pton(AF_INET, text.c_str(), gid.raw + 12) == 1) return gid;
  return std::nullopt;
}

DeviceOptions parse_device_options(const char* devices, const char* gids, const char* mtu) {
  DeviceOptions made;
  for_each_word(devices != nullptr ? devices : "", [&](std::string_view name) {
    const bool known = std::ranges::find(made.devices, name) != made.devices.end();
    if (name_valid(name) && !known && made.devices.size() < max_devices) made.devices.emplace_back(name);
  });
  if (made.devices.empty()) made.devices.emplace_back("weir0");
  for_each_word(gids != nullptr ? gids : "", [&](std::string_view address) {
    if (const auto gid = gid_of_address(address)) made.gids.push_back(*gid);
  });
  for (const ibv_mtu one : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096})
    if (mtu != nullptr && std::to_string(bytes_of(one)) == mtu) made.active_mtu = one;
  return made;
}

const DeviceOptions& device_options() {
  static const auto* read = new DeviceOptions(parse_device_options(
      ::secure_getenv(devices_variable), ::secure_getenv(gids_variable), ::secure_getenv(mtu_variable)));
  return *read;
}

}  // namespace weir::verbs

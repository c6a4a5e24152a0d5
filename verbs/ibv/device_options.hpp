// What the user told `weir run` about the devices: their number, names and GIDs. It travels in the
// environment, because the process that needs it runs a program that knows nothing of Weir.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::verbs {

inline constexpr char devices_variable[] = "WEIR_DEVICES";  // names, comma-separated; default weir0
inline constexpr char gids_variable[] = "WEIR_GIDS";        // addresses, comma-separated; default: the host's
inline constexpr char mtu_variable[] = "WEIR_MTU";          // bytes, 256 to 4096; default: the interface's
inline constexpr std::size_t max_devices = 16;

struct DeviceOptions {
  std::vector<std::string> devices;
  std::vector<ibv_gid> gids;          // empty: the host's addresses
  std::optional<ibv_mtu> active_mtu;  // nullopt: what the interface carries (path.hpp)
};
// Drops values that make no sense. If no device name is left, uses the default one.
DeviceOptions parse_device_options(const char* devices, const char* gids, const char* mtu = nullptr);
// The options that this process was started with; read once.
const DeviceOptions& device_options();

inline std::uint32_t bytes_of(ibv_mtu mtu) { return 128u << static_cast<unsigned>(mtu); }

// RoCE v2: an IPv6 address is its own GID, an IPv4 address is the mapped form ::ffff:a.b.c.d (Annex A17.4.5).
std::optional<ibv_gid> gid_of_address(std::string_view address);

}  // namespace weir::verbs

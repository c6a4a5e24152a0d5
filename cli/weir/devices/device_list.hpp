// RDMA devices as `weir devices` shows them, from whatever source.
#pragma once

#include <expected>
#include <string>
#include <vector>

namespace weir::command {

struct DeviceGid {
  unsigned index;
  std::string gid;           // fe80::1, ::ffff:127.0.0.1
  std::string type;          // "RoCE v2", "IB/RoCE v1"; empty: unknown
  std::string reaches = {};  // what it can reach, and how; empty: unknown
};

struct DevicePort {
  unsigned number;
  std::string state;       // ACTIVE, DOWN, ...
  std::string link_layer;  // Ethernet, InfiniBand
  std::vector<DeviceGid> gids;
};

struct Device {
  std::string name;
  bool software;
  std::vector<DevicePort> ports;
};

// Read from <sysfs_root>/class/infiniband; empty if there are none.
std::vector<Device> hardware_devices(const std::string& sysfs_root);

// Asks the drop-in libibverbs in `library_directory`, loaded into this process. The error names the cause.
std::expected<std::vector<Device>, std::string> software_devices(const std::string& library_directory);

// 16 bytes in IPv6 notation.
std::string gid_text(const unsigned char (&raw)[16]);

}  // namespace weir::command

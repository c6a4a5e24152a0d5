// The files of a device below /sys/class/infiniband/NAME. libibverbs answers from this one list, and
// the view is built from it.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::verbs {

struct SysfsFile {
  std::string path;  // below the device's directory
  std::string text;  // without the newline at its end
};
std::vector<SysfsFile> device_files(std::size_t device);

// Locally administered. It is the same on every start on a host and differs between devices.
__be64 device_guid(std::size_t device);
// That of the first device on the host of this name, in the order of this machine.
std::uint64_t guid_at_host(std::string_view name);

// The interface of the first GID; empty: no interface.
std::string device_interface();

}  // namespace weir::verbs

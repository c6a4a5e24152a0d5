// The files of a device below /sys/class/infiniband/NAME. libibverbs answers from this one list, and
// the view is built from it.
#pragma once

#include <linux/types.h>

#include <string>
#include <vector>

namespace weir::verbs {

struct SysfsFile {
  std::string path;  // below the device's directory
  std::string text;  // without the newline at its end
};
std::vector<SysfsFile> device_files(std::size_t device);

// Locally administered. It is the same on every start on a host and differs between devices.
__be64 device_guid(std::size_t device);

// The interface of the first GID; empty: no interface.
std::string device_interface();

}  // namespace weir::verbs

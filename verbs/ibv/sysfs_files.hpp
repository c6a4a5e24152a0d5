// The files of a device below /sys/class/infiniband/NAME: one list, from which libibverbs answers and the
// view is built.
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

// Locally administered; the same on every start on a host, and another for each device.
__be64 device_guid(std::size_t device);

// The interface behind the first GID; empty: there is none.
std::string device_interface();

}  // namespace weir::verbs

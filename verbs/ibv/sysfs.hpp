// What programs read about a device beside verbs: the files under /sys/class/infiniband.
//
// There is no kernel device, so libibverbs answers for the device's own directory from a table; `weir run`
// will give programs that open those files themselves a real tree.
#pragma once

#include <linux/types.h>

namespace weir::verbs {

inline constexpr char device_name[] = "weir0";
inline constexpr char device_sysfs_path[] = "/sys/class/infiniband/weir0";
__be64 device_guid();

}  // namespace weir::verbs

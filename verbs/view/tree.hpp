// The tree of files that stands for /sys/class/infiniband, /sys/class/infiniband_verbs and /dev/infiniband.
//
// Made when a process first names one of them, in the runtime directory, under a name that says whose it is:
// its pid namespace, its pid, and when it started. It is removed when that process ends; what a killed one
// left is removed by the next that makes one. A forked child uses its parent's as long as it is there.
#pragma once

#include <string>

namespace weir::verbs {

// Its root, without a slash at the end; empty: it cannot be made. Thread-safe.
std::string view_tree();
// Where the root is if there is one already.
std::string existing_view_tree();
void remove_view_tree();

// Whether that file, by its real name, is in a tree of this runtime directory, made by whatever process.
bool is_in_a_view_tree(const std::string& path);

}  // namespace weir::verbs

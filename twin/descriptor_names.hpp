// What a descriptor of a process is, for people: a file's path, a pipe, a TCP connection with its ends.
//
// Threading: from any thread.
#pragma once

#include <sys/types.h>

#include <string>

namespace weir::twin {

// "pipe:[4711]", "TCP 10.77.0.2:40000 to 10.77.0.1:6379"; empty: there is no such process or descriptor.
std::string descriptor_name(pid_t process, int descriptor);

// The line of /proc/net/tcp or tcp6 that begins "  0: 02004D0A:9C40 ..." in the same words; empty: it is of
// another inode, or no such line.
std::string connection_name(const std::string& line, const std::string& inode);

}  // namespace weir::twin

// Which network namespace this thread is in, as a folder of the runtime directory.
//
// Addresses, ports and slots belong to a network namespace, as with an RDMA device that the kernel gives to
// one: 127.0.0.1 of one container is not 127.0.0.1 of another, although the two may share the runtime
// directory. So each namespace has a folder of its own there, and processes of two namespaces do not meet.
//
// No state; safe from any thread.
#pragma once

#include <string>
#include <string_view>

namespace weir::link {

inline constexpr std::string_view network_folder_prefix = "net-";

// "net-" and the namespace's cookie, a number that no other namespace gets until the machine restarts.
// "net-0" where the kernel has no cookies (before Linux 5.14): namespaces are not told apart then.
std::string network_folder();

}  // namespace weir::link

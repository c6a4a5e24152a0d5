// `weir run --host`: goes on in a host of a network that `weir fabric up` made.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace weir::command {

// The folder of the network that is meant (twin/hosts/folder.hpp): `name` if it is not empty, else
// WEIR_FABRIC, which is set in a host, else the only one that is up. The error says which there are.
std::expected<std::string, std::string> find_fabric(const std::string& name);

// Returns nothing in a new process that is in the host, and is to become a program. In the process that
// called, returns when that one has ended: the exit status, also if there is no such host, after a complaint.
// Until then it passes signals on. If the program is killed by a signal, so is this process.
std::optional<int> go_on_in_host(std::string_view subcommand, const std::string& fabric,
                                 const std::string& host);

}  // namespace weir::command

// Tells systemd, or whatever service manager started the server, about its progress: sd_notify(3).
#pragma once

#include <string>
#include <string_view>

namespace weir::kv {

// Sends `state`, such as "READY=1", to the socket named in $NOTIFY_SOCKET: a path, or @NAME for an abstract
// socket. Does nothing if the name is empty or nobody listens there.
void notify_supervisor(const std::string& socket, std::string_view state);

}  // namespace weir::kv

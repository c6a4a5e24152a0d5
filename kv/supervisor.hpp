// Tells the one who started the server, if that is systemd or the like, how far it is: sd_notify(3).
#pragma once

#include <string>
#include <string_view>

namespace weir::kv {

// Sends `state`, as "READY=1", to the socket whose name is in $NOTIFY_SOCKET: a path, or @NAME for one
// without a file. Nothing happens where nobody listens there, or the name is empty.
void tell_supervisor(const std::string& socket, std::string_view state);

}  // namespace weir::kv

// What became of this process's connections, in five lines when it ends (WEIR_SOCKETS=report). Any thread.
#pragma once

#include <string>

namespace weir::sockets {

class Connection;

void count_ended(const Connection& connection);  // at its last close
std::string report();                            // of those, and those that are still open

}  // namespace weir::sockets

// Summarizes this process's connections in five lines at its end (WEIR_SOCKETS=report); empty if it had none.
// Any thread.
#pragma once

#include <string>

namespace weir::sockets {

class Connection;

void count_ended(const Connection& connection);  // at its last close
std::string report();                            // on ended and on open connections

}  // namespace weir::sockets

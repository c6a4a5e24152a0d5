// Ports that nobody has chosen.
#pragma once

namespace weir::twin {

// Binds a socket of the internet that has no port yet.
void draw_port_before_connect(int descriptor);

}  // namespace weir::twin

// The kernel's TCP within one machine, at rest.
#pragma once

namespace weir::twin {

// After something was sent over that connection: returns when the receiving end has what its window takes.
// The kernel delivers mostly inside the sending call, but a long burst goes on in a thread of its own, and
// how far that is when the receiver looks would be real time's affair.
void wait_until_delivered(int descriptor);

}  // namespace weir::twin

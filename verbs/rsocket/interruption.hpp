// Whether a call that a signal interrupted is to be waited in again, as the kernel restarts recv(2) and its
// like (signal(7)). It cannot do so for us, who sleep in poll().
#pragma once

namespace weir::rsocket {

// True: whatever signal came, its handler was installed with SA_RESTART. poll() does not say which one came,
// so while any handler is there without, the answer is no. Any thread.
bool handlers_restart_calls();

}  // namespace weir::rsocket

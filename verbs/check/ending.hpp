// The end of the process: leaks, the summary, the exit status.
#pragma once

namespace weir::check {

// From now on the process has something to report at its end.
void device_opened();

}  // namespace weir::check

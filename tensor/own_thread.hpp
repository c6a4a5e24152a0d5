// A thread of the library's own in somebody's program: it has a name, and takes none of the program's
// signals.
#pragma once

#include <functional>
#include <thread>

namespace weir::tensor {

// Throws std::system_error if there is no thread.
std::thread start_own_thread(const char* name, std::function<void()> work);

}  // namespace weir::tensor

// The size of the stack, which a login or a service may have set so low that the server overruns it.
#pragma once

#include <string>

namespace weir::kv {

// Raises the limit for this thread and for those made later, if it is too low. Returns why the server cannot
// run; empty: it can.
std::string widen_stack();

}  // namespace weir::kv

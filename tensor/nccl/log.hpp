// Lines for NCCL's log. NCCL gives its log function to init(); before that, lines go nowhere.
//
// Threading: any thread; NCCL's function is one of the process.
#pragma once

#include <string>

#include "tensor/nccl/abi_types.hpp"

namespace weir::nccl {

void set_log_function(LogFunction function);
// Shown with NCCL_DEBUG=INFO.
void log_info(const std::string& line);
// Shown with NCCL_DEBUG=WARN. Names the cause and the next step.
void log_warning(const std::string& line);

}  // namespace weir::nccl

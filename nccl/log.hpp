// Writes lines to NCCL's log. NCCL passes its log function to init(); lines before that are dropped.
//
// Threading: any thread; the process has one log function.
#pragma once

#include <string>

#include "nccl/abi_types.hpp"

namespace weir::nccl {

void set_log_function(LogFunction function);
// Shown with NCCL_DEBUG=INFO.
void log_info(const std::string& line);
// Shown with NCCL_DEBUG=WARN. Must name the cause and the next step.
void log_warning(const std::string& line);

}  // namespace weir::nccl

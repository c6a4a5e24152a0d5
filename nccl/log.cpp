#include "nccl/log.hpp"

#include <atomic>

namespace weir::nccl {
namespace {

// Set by init() and read by every connection's thread. NCCL owns the function, which outlives us.
std::atomic<LogFunction> log_function{nullptr};

void write(LogLevel level, unsigned long flags, const std::string& line) {
  if (const LogFunction function = log_function.load(std::memory_order_acquire); function != nullptr)
    function(level, flags, "weir", 0, "%s", ("NET/Weir : " + line).c_str());
}

}  // namespace

void set_log_function(LogFunction function) { log_function.store(function, std::memory_order_release); }
void log_info(const std::string& line) { write(LogLevel::info, log_init | log_net, line); }
void log_warning(const std::string& line) { write(LogLevel::warn, log_all, line); }

}  // namespace weir::nccl

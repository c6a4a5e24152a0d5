// The constants of NCCL's network plugin interface that are the same in all of its versions.
//
// Declared here from the interface's documentation, so that building the plugin needs nothing from NCCL;
// tests/nccl/layout_test.cpp checks the layouts. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::nccl {

// ncclResult_t.
enum class Status : int {
  success = 0,
  system_error = 2,    // the operating system, a library or the network failed
  internal_error = 3,  // the caller broke a rule of the interface
  invalid_usage = 5,   // the user's configuration is wrong, or sizes do not fit
  remote_error = 6,    // the peer failed
};

enum class LogLevel : int { warn = 2, info = 3 };
// ncclDebugLogSubSys: the part of NCCL that a line belongs to.
inline constexpr unsigned long log_init = 0x1, log_net = 0x10, log_all = ~0ul;
using LogFunction = void (*)(LogLevel level, unsigned long flags, const char* file, int line,
                             const char* format, ...);

// ncclProfilerCallback_t; we record no events of our own.
using ProfilerFunction = Status (*)(void** event, int type, void* parent, std::int64_t plugin, void* data);

inline constexpr std::size_t handle_bytes = 128;  // NCCL_NET_HANDLE_MAXSIZE
inline constexpr int pointer_host = 1;            // NCCL_PTR_HOST
inline constexpr int device_type_host = 0;        // NCCL_NET_DEVICE_HOST
inline constexpr int undefined_id = -1;           // NCCL_NET_ID_UNDEF: no rail or plane was set
// NCCL_NET_OPTIONAL_RECV_COMPLETION: if irecv() is called with this value in the request, NCCL detects the
// arrival of the data itself.
inline constexpr std::uintptr_t optional_completion = 1;
inline constexpr int max_requests = 32;                           // NCCL_NET_MAX_REQUESTS, per connection
inline constexpr std::size_t max_message = std::size_t{1} << 30;  // NCCL's own limit through v8

}  // namespace weir::nccl

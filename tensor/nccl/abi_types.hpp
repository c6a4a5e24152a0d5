// What NCCL's network plugin interface says in numbers, the same in each of its versions.
//
// Declared here from the interface's documentation, so that nothing of NCCL is needed to build the plugin;
// the layouts are checked by tests/tensor/nccl/layout_test.cpp. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::nccl {

// ncclResult_t.
enum class Status : int {
  success = 0,
  system_error = 2,    // the operating system, a library or the network failed
  internal_error = 3,  // the caller broke a rule of the interface
  invalid_usage = 5,   // the user's configuration, or sizes that do not fit
  remote_error = 6,    // the peer failed
};

enum class LogLevel : int { warn = 2, info = 3 };
// ncclDebugLogSubSys: which part of NCCL a line belongs to.
inline constexpr unsigned long log_init = 0x1, log_net = 0x10, log_all = ~0ul;
using LogFunction = void (*)(LogLevel level, unsigned long flags, const char* file, int line,
                             const char* format, ...);

// ncclProfilerCallback_t; we record no events of our own.
using ProfilerFunction = Status (*)(void** event, int type, void* parent, std::int64_t plugin, void* data);

inline constexpr std::size_t handle_bytes = 128;  // NCCL_NET_HANDLE_MAXSIZE
inline constexpr int pointer_host = 1;            // NCCL_PTR_HOST
inline constexpr int device_type_host = 0;        // NCCL_NET_DEVICE_HOST
inline constexpr int undefined_id = -1;           // NCCL_NET_ID_UNDEF: a rail or plane nobody named
// NCCL_NET_OPTIONAL_RECV_COMPLETION, as a request's value when irecv is called: NCCL sees the data by itself.
inline constexpr std::uintptr_t optional_completion = 1;
inline constexpr int max_requests = 32;                           // NCCL_NET_MAX_REQUESTS, per connection
inline constexpr std::size_t max_message = std::size_t{1} << 30;  // what NCCL sends at most through v8

}  // namespace weir::nccl

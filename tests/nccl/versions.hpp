// NCCL's plugin interface in all of its versions, as the plugin declares it, for callers.
#pragma once

#include "nccl/abi_types.hpp"

namespace weir::nccl {
namespace v8 {
#define WEIR_NCCL_VERSION 8
#include "nccl/abi.inc"
#undef WEIR_NCCL_VERSION
}  // namespace v8
namespace v9 {
#define WEIR_NCCL_VERSION 9
#include "nccl/abi.inc"
#undef WEIR_NCCL_VERSION
}  // namespace v9
namespace v10 {
#define WEIR_NCCL_VERSION 10
#include "nccl/abi.inc"
#undef WEIR_NCCL_VERSION
}  // namespace v10
namespace v11 {
#define WEIR_NCCL_VERSION 11
#include "nccl/abi.inc"
#undef WEIR_NCCL_VERSION
}  // namespace v11
namespace v12 {
#define WEIR_NCCL_VERSION 12
#include "nccl/abi.inc"
#undef WEIR_NCCL_VERSION
}  // namespace v12
}  // namespace weir::nccl

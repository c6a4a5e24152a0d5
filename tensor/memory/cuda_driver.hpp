// NVIDIA's driver, libcuda.so.1, loaded when a program first uses GPU memory. Building Weir, and running it
// without GPUs, needs nothing from CUDA.
//
// Only the functions that copying needs are declared here, with the numbers of the driver's stable interface
// (cuda.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor/error.hpp"

namespace weir::tensor {

struct CudaDriver {
  using Status = int;
  using DevicePointer = std::uint64_t;

  Status (*init)(unsigned flags);
  Status (*device_get)(int* device, int number);
  Status (*primary_context_retain)(void** context, int device);
  Status (*context_push)(void* context);
  Status (*context_pop)(void** context);
  Status (*stream_create)(void** stream, unsigned flags);
  Status (*stream_synchronize)(void* stream);
  Status (*copy_to_host)(void* to, DevicePointer from, std::size_t bytes, void* stream);
  Status (*copy_to_gpu)(DevicePointer to, const void* from, std::size_t bytes, void* stream);
  Status (*host_register)(void* memory, std::size_t bytes, unsigned flags);
  Status (*host_unregister)(void* memory);
  Status (*error_string)(Status, const char** text);

  // Loads and initialises the driver once for the process; a failure is remembered as well. Errc::no_gpu.
  static Result<const CudaDriver*> get();
  std::string text(Status) const;
};

}  // namespace weir::tensor

// A GPU whose memory arrays lie in: their bytes to host memory and back.
//
// Order: copies run on a stream of our own. Whoever wrote an array, or still reads what is to be overwritten,
// makes `stream()` wait for that (DLPack's `stream`) before the copy begins; wait() returns when all copies
// are done, and what is begun afterwards, on any stream, sees them. Threading: any thread. A Gpu lives as
// long as the process.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/cuda_driver.hpp"
#include "tensor/error.hpp"

namespace weir::tensor {

class Gpu {
 public:
  // By CUDA's number of it, which is DLPack's device_id. no_gpu.
  static Result<Gpu*> open(int number);

  void* stream() const { return stream_; }
  // These begin a copy. `gpu` is what CUDA or DLPack says; memory that is not this GPU's is an error, no_gpu.
  Result<void> to_host(std::span<std::byte> to, const void* gpu);
  Result<void> to_gpu(void* gpu, std::span<const std::byte> from);
  Result<void> wait();

  // Host memory that the GPU reads and writes itself, several times as fast as through the driver's own
  // buffers. False: it cannot be pinned, and stays ordinary memory.
  bool pin(std::span<std::byte> memory);
  void unpin(std::span<std::byte> memory);

 private:
  Gpu(const CudaDriver& cuda, void* context, void* stream)
      : cuda_(cuda), context_(context), stream_(stream) {}
  static Result<Gpu*> make(int number);
  // Calls one of the driver's functions with this GPU's context.
  template <class Call>
  Result<void> with_context(const char* what, Call call);

  const CudaDriver& cuda_;
  void* context_;
  void* stream_;
};

}  // namespace weir::tensor

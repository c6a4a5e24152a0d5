// A GPU whose memory holds arrays: copies their bytes to host memory and back.
//
// Order: copies run on a stream of our own. Before a copy begins, make `stream()` wait for the work that
// writes the source or still reads the destination (DLPack's `stream`). wait() returns when all copies are
// done; work submitted afterwards, on any stream, sees them. Threading: any thread. A Gpu lives as long as
// the process.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/error.hpp"
#include "tensor/memory/cuda_driver.hpp"

namespace weir::tensor {

class Gpu {
 public:
  // `number` is CUDA's device number, which is also DLPack's device_id. Errc::no_gpu.
  static Result<Gpu*> open(int number);

  void* stream() const { return stream_; }
  // These start a copy. `gpu` is an address from CUDA or DLPack; memory of another device is an error,
  // no_gpu.
  Result<void> to_host(std::span<std::byte> to, const void* gpu);
  Result<void> to_gpu(void* gpu, std::span<const std::byte> from);
  Result<void> wait();

  // Pins host memory, so that the GPU reads and writes it directly: several times as fast as through the
  // driver's own buffers. Returns false if it cannot be pinned; it stays ordinary memory.
  bool pin(std::span<std::byte> memory);
  void unpin(std::span<std::byte> memory);

 private:
  Gpu(const CudaDriver& cuda, void* context, void* stream)
      : cuda_(cuda), context_(context), stream_(stream) {}
  static Result<Gpu*> make(int number);
  // Calls one of the driver's functions with this GPU's context current.
  template <class Call>
  Result<void> with_context(const char* what, Call call);

  const CudaDriver& cuda_;
  void* context_;
  void* stream_;
};

}  // namespace weir::tensor

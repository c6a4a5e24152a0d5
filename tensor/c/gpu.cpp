// GPU memory for C: copies between a GPU and host memory, and staging memory identified by its address.
#include "tensor/memory/gpu.hpp"

#include "tensor/c/options.hpp"
#include "tensor/memory/gpu_staging.hpp"

using namespace weir::tensor;

extern "C" {

int weir_tensor_gpu_stream(int device, void** stream, weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    const Result<Gpu*> gpu = Gpu::open(device);
    if (!gpu) return std::unexpected(gpu.error());
    *stream = (*gpu)->stream();
    return {};
  });
}

int weir_tensor_gpu_read(int device, void* host, const void* gpu_memory, size_t bytes,
                         weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    const Result<Gpu*> gpu = Gpu::open(device);
    if (!gpu) return std::unexpected(gpu.error());
    return (*gpu)->to_host({static_cast<std::byte*>(host), bytes}, gpu_memory);
  });
}

int weir_tensor_gpu_write(int device, void* gpu_memory, const void* host, size_t bytes,
                          weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    const Result<Gpu*> gpu = Gpu::open(device);
    if (!gpu) return std::unexpected(gpu.error());
    return (*gpu)->to_gpu(gpu_memory, {static_cast<const std::byte*>(host), bytes});
  });
}

int weir_tensor_gpu_wait(int device, weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    const Result<Gpu*> gpu = Gpu::open(device);
    if (!gpu) return std::unexpected(gpu.error());
    return (*gpu)->wait();
  });
}

int weir_tensor_staging_take(int device, size_t bytes, void** memory, weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    const Result<Gpu*> gpu = Gpu::open(device);
    if (!gpu) return std::unexpected(gpu.error());
    const Result<std::byte*> taken = GpuStaging::of_process().take(**gpu, bytes);
    if (!taken) return std::unexpected(taken.error());
    *memory = *taken;
    return {};
  });
}

void weir_tensor_staging_give_back(void* memory) {
  GpuStaging::of_process().give_back(static_cast<std::byte*>(memory));
}

}  // extern "C"

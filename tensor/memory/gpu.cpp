#include "tensor/memory/gpu.hpp"

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace weir::tensor {
namespace {

constexpr unsigned non_blocking = 1;  // CU_STREAM_NON_BLOCKING: do not wait for the default stream
constexpr unsigned portable = 1;      // CU_MEMHOSTREGISTER_PORTABLE: pinned for every GPU of the process

CudaDriver::DevicePointer pointer(const void* gpu) { return reinterpret_cast<std::uintptr_t>(gpu); }

}  // namespace

template <class Call>
Result<void> Gpu::with_context(const char* what, Call call) {
  CudaDriver::Status status = cuda_.context_push(context_);
  if (status == 0) {
    status = call();
    void* popped = nullptr;
    cuda_.context_pop(&popped);
  }
  if (status == 0) return {};
  return fail(Errc::no_gpu, std::string(what) + ": " + cuda_.text(status));
}

Result<Gpu*> Gpu::make(int number) {
  const Result<const CudaDriver*> cuda = CudaDriver::get();
  if (!cuda) return std::unexpected(cuda.error());
  int device = 0;
  void *context = nullptr, *stream = nullptr, *popped = nullptr;
  // The primary context, which CUDA's runtime and so torch and CuPy use.
  CudaDriver::Status status = (*cuda)->device_get(&device, number);
  if (status == 0) status = (*cuda)->primary_context_retain(&context, device);
  if (status == 0) status = (*cuda)->context_push(context);
  if (status == 0) {
    status = (*cuda)->stream_create(&stream, non_blocking);
    (*cuda)->context_pop(&popped);
  }
  if (status != 0)
    return fail(Errc::no_gpu, "GPU " + std::to_string(number) + " cannot be used: " + (*cuda)->text(status));
  return new Gpu(**cuda, context, stream);
}

Result<Gpu*> Gpu::open(int number) {
  static std::mutex mutex;
  static auto* const opened = new std::map<int, Gpu*>;  // leaked: used while the process exits
  const std::lock_guard lock(mutex);
  if (const auto found = opened->find(number); found != opened->end()) return found->second;
  Result<Gpu*> made = make(number);
  if (made) opened->emplace(number, *made);
  return made;
}

Result<void> Gpu::to_host(std::span<std::byte> to, const void* gpu) {
  if (to.empty()) return {};
  return with_context("the array cannot be copied from the GPU",
                      [&] { return cuda_.copy_to_host(to.data(), pointer(gpu), to.size(), stream_); });
}

Result<void> Gpu::to_gpu(void* gpu, std::span<const std::byte> from) {
  if (from.empty()) return {};
  return with_context("the array cannot be copied to the GPU",
                      [&] { return cuda_.copy_to_gpu(pointer(gpu), from.data(), from.size(), stream_); });
}

Result<void> Gpu::wait() {
  return with_context("a copy failed", [&] { return cuda_.stream_synchronize(stream_); });
}

bool Gpu::pin(std::span<std::byte> memory) {
  return with_context("cannot pin memory",
                      [&] { return cuda_.host_register(memory.data(), memory.size(), portable); })
      .has_value();
}

void Gpu::unpin(std::span<std::byte> memory) {
  (void)with_context("cannot unpin memory", [&] { return cuda_.host_unregister(memory.data()); });
}

}  // namespace weir::tensor

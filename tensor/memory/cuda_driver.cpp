#include "tensor/memory/cuda_driver.hpp"

#include <dlfcn.h>

#include <utility>

namespace weir::tensor {
namespace {

template <class Function>
bool find(void* library, const char* name, Function*& into) {
  into = reinterpret_cast<Function*>(dlsym(library, name));
  return into != nullptr;
}

// Looks up each function under the version suffix that cuda.h has used since CUDA 6.5.
bool find_all(void* library, CudaDriver& cuda) {
  return find(library, "cuInit", cuda.init) && find(library, "cuDeviceGet", cuda.device_get) &&
         find(library, "cuDevicePrimaryCtxRetain", cuda.primary_context_retain) &&
         find(library, "cuCtxPushCurrent_v2", cuda.context_push) &&
         find(library, "cuCtxPopCurrent_v2", cuda.context_pop) &&
         find(library, "cuStreamCreate", cuda.stream_create) &&
         find(library, "cuStreamSynchronize", cuda.stream_synchronize) &&
         find(library, "cuMemcpyDtoHAsync_v2", cuda.copy_to_host) &&
         find(library, "cuMemcpyHtoDAsync_v2", cuda.copy_to_gpu) &&
         find(library, "cuMemHostRegister_v2", cuda.host_register) &&
         find(library, "cuMemHostUnregister", cuda.host_unregister) &&
         find(library, "cuGetErrorString", cuda.error_string);
}

Result<CudaDriver> load() {
  // Never unloaded: CUDA's own threads run in it until the process ends.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return fail(Errc::no_gpu, std::string("libcuda.so.1 cannot be loaded: ") + (why != nullptr ? why : "?"));
  }
  CudaDriver cuda{};
  if (!find_all(library, cuda)) return fail(Errc::no_gpu, "libcuda.so.1 is too old");
  if (const auto status = cuda.init(0); status != 0)
    return fail(Errc::no_gpu, "CUDA does not start: " + cuda.text(status));
  return cuda;
}

}  // namespace

Result<const CudaDriver*> CudaDriver::get() {
  static const Result<CudaDriver> loaded = load();
  if (!loaded) return std::unexpected(loaded.error());
  return &*loaded;
}

std::string CudaDriver::text(Status status) const {
  const char* text = nullptr;
  if (error_string(status, &text) != 0 || text == nullptr) text = "unknown";
  return std::string(text) + " (" + std::to_string(status) + ")";
}

}  // namespace weir::tensor

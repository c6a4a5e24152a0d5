// A libcuda.so.1 for machines without a GPU. "GPU memory" is host memory behind an invalid address, so code
// that takes it for host memory crashes. Copies happen only when their stream is waited for, so code that
// does not wait sees old bytes. Functions for the tests are at the end.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace {

constexpr std::uint64_t bias = std::uint64_t{1} << 60;
constexpr int success = 0, invalid_value = 1, out_of_memory = 2, invalid_device = 101;

struct State {
  std::mutex mutex;
  std::vector<std::function<void()>> begun;
  std::map<void*, std::size_t> pinned;
  std::size_t waits = 0;
};
State& state() {
  static State all;
  return all;
}
int context, stream;

int begin(std::uint64_t gpu, const std::function<void(void*)>& copy) {
  if (gpu < bias) return invalid_value;
  const std::lock_guard lock(state().mutex);
  state().begun.emplace_back([gpu, copy] { copy(reinterpret_cast<void*>(gpu - bias)); });
  return success;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int cuInit(unsigned) { return std::getenv("FAKE_CUDA_BROKEN") != nullptr ? 999 : success; }
int cuDeviceGet(int* device, int number) {
  *device = number;
  return number == 0 ? success : invalid_device;
}
int cuDevicePrimaryCtxRetain(void** to, int) {
  *to = &context;
  return success;
}
int cuCtxPushCurrent_v2(void*) { return success; }
int cuCtxPopCurrent_v2(void**) { return success; }
int cuStreamCreate(void** to, unsigned) {
  *to = &stream;
  return success;
}
int cuStreamSynchronize(void*) {
  const std::lock_guard lock(state().mutex);
  for (const auto& copy : state().begun) copy();
  state().begun.clear();
  ++state().waits;
  return success;
}
int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void*) {
  return begin(from, [to, bytes](const void* gpu) { std::memcpy(to, gpu, bytes); });
}
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void*) {
  return begin(to, [from, bytes](void* gpu) { std::memcpy(gpu, from, bytes); });
}
int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
  if (std::getenv("FAKE_CUDA_PINS_NOTHING") != nullptr) return out_of_memory;
  const std::lock_guard lock(state().mutex);
  return state().pinned.emplace(memory, bytes).second ? success : invalid_value;
}
int cuMemHostUnregister(void* memory) {
  const std::lock_guard lock(state().mutex);
  return state().pinned.erase(memory) == 1 ? success : invalid_value;
}
int cuGetErrorString(int status, const char** text) {
  *text = status == invalid_device ? "invalid device ordinal" : "as the test wants";
  return success;
}

// ---- for the tests ----
std::size_t fake_cuda_pinned_bytes() {
  const std::lock_guard lock(state().mutex);
  std::size_t bytes = 0;
  for (const auto& [memory, size] : state().pinned) bytes += size;
  return bytes;
}
std::size_t fake_cuda_waits() {
  const std::lock_guard lock(state().mutex);
  return state().waits;
}
}
#pragma GCC visibility pop

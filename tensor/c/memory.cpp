// Shared memory for C, identified by its address.
#include <map>
#include <mutex>

#include "tensor/c/options.hpp"
#include "tensor/memory/shared_memory.hpp"

using weir::tensor::SharedMemory;

namespace {

struct Given {
  std::mutex mutex;
  std::map<void*, SharedMemory> by_address;
};
// Never destroyed: a program may free memory while it exits.
Given& given() {
  static auto* const all = new Given;
  return *all;
}

}  // namespace

extern "C" {

void* weir_tensor_empty(size_t bytes) {
  auto memory = SharedMemory::map(bytes);
  if (!memory || memory->bytes().empty()) return nullptr;
  void* address = memory->bytes().data();
  const std::lock_guard lock(given().mutex);
  given().by_address.emplace(address, std::move(*memory));
  return address;
}

void weir_tensor_empty_free(void* memory) {
  SharedMemory gone;  // unmapped outside the lock
  const std::lock_guard lock(given().mutex);
  if (const auto found = given().by_address.find(memory); found != given().by_address.end()) {
    gone = std::move(found->second);
    given().by_address.erase(found);
  }
}

}  // extern "C"

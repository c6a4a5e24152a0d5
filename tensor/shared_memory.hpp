// Anonymous memory that the software NIC of another process can map: what lies here is copied by memcpy, not
// through the kernel. On a real NIC it is ordinary memory. Zero at first; pages are taken as they are
// touched.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/error.hpp"

namespace weir::tensor {

class SharedMemory {
 public:
  SharedMemory() = default;
  // too_much: there is no memory or no descriptor.
  static Result<SharedMemory> map(std::size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
  int fd_ = -1;
};

}  // namespace weir::tensor

// Anonymous memory that the software NIC of another process can map, so that data here are copied by memcpy
// instead of by the kernel. For a real NIC it is ordinary memory. Initially zero; pages are allocated when
// they are touched.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/error.hpp"

namespace weir::tensor {

class SharedMemory {
 public:
  SharedMemory() = default;
  // Errc::too_much: no memory or no descriptor is left.
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

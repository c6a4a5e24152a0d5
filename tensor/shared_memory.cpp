#include "tensor/shared_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace weir::tensor {

Result<SharedMemory> SharedMemory::map(std::size_t bytes) {
  SharedMemory memory;
  if (bytes == 0) return memory;
  const auto failed = [&] {
    return fail(Errc::too_much, "cannot take " + std::to_string(bytes) +
                                    " bytes of shared memory: " + std::generic_category().message(errno));
  };
  const int fd = memfd_create("weir-tensor", MFD_CLOEXEC);
  if (fd < 0) return failed();
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    const auto why = failed();
    close(fd);
    return why;
  }
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    const auto why = failed();
    close(fd);
    return why;
  }
  close(fd);
  memory.bytes_ = {static_cast<std::byte*>(at), bytes};
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory SharedMemory::adopt(void* memory, std::size_t bytes) {
  SharedMemory adopted;
  if (memory != nullptr) adopted.bytes_ = {static_cast<std::byte*>(memory), bytes};
  return adopted;
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace weir::tensor

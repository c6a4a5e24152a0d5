#include "tensor/memory/shared_memory.hpp"

#include <fcntl.h>
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
  memory.fd_ = memfd_create("weir-tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory.fd_ < 0 || ftruncate(memory.fd_, static_cast<off_t>(bytes)) != 0 ||
      fcntl(memory.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return failed();
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd_, 0);
  if (at == MAP_FAILED) return failed();
  memory.bytes_ = {static_cast<std::byte*>(at), bytes};
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), fd_(std::exchange(other.fd_, -1)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(fd_, other.fd_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  if (fd_ >= 0) close(fd_);
}

}  // namespace weir::tensor

#include "verbs/rsocket/stream_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace weir::rsocket {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

int StreamMemory::map(std::size_t bytes) {
  bytes_ = bytes;
  file_.reset(::memfd_create("weir-rsocket", MFD_CLOEXEC));
  if (file_ && ::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) file_.reset();
  const int flags = file_ ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file_.get(), 0);
  if (at == MAP_FAILED) return errno;
  base_ = static_cast<std::byte*>(at);
  return 0;
}

std::expected<std::unique_ptr<StreamMemory>, int> StreamMemory::make(ibv_context* device,
                                                                     const Options& options) {
  std::unique_ptr<StreamMemory> memory(new StreamMemory);
  memory->iomap_entries_ = options.iomap_entries;
  memory->receive_bytes_ = options.receive_bytes;
  memory->send_bytes_ = options.send_bytes;
  memory->table_bytes_ =
      whole_pages(buffer_list_entries * sizeof(RemoteBuffer) + options.iomap_entries * sizeof(IomapEntry));
  memory->remote_bytes_ = memory->table_bytes_ + whole_pages(options.receive_bytes);
  if (const int error = memory->map(memory->remote_bytes_ + whole_pages(options.send_bytes)); error != 0)
    return std::unexpected(error);
  memory->pd_ = ibv_alloc_pd(device);
  if (memory->pd_ == nullptr) return std::unexpected(errno);
  memory->remote_ = ibv_reg_mr(memory->pd_, memory->base_, memory->remote_bytes_,
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (memory->remote_ == nullptr) return std::unexpected(errno);
  memory->sending_ =
      ibv_reg_mr(memory->pd_, memory->send_ring().data(), memory->send_bytes_, IBV_ACCESS_LOCAL_WRITE);
  if (memory->sending_ == nullptr) return std::unexpected(errno);
  return memory;
}

StreamMemory::~StreamMemory() {
  if (sending_ != nullptr) ibv_dereg_mr(sending_);
  if (remote_ != nullptr) ibv_dereg_mr(remote_);
  if (pd_ != nullptr) ibv_dealloc_pd(pd_);
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

std::span<IomapEntry> StreamMemory::iomap() const {
  return {reinterpret_cast<IomapEntry*>(base_ + buffer_list_entries * sizeof(RemoteBuffer)), iomap_entries_};
}

}  // namespace weir::rsocket

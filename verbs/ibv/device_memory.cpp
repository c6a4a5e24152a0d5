// Device memory: ibv_alloc_dm(3), ibv_reg_dm_mr(3).
//
// The NIC is software, so its memory is the host's. Each allocation is a shared file, which a neighbour can
// map and then reach without a system call. As on devices that have such memory, the application copies in
// and out in multiples of 4 bytes, and addresses in a region start at 0.
#include "verbs/ibv/device_memory.hpp"

#include <cerrno>
#include <cstring>
#include <map>

namespace weir::verbs {
namespace {

constexpr std::size_t granule_bytes = 4;
constexpr std::uint32_t max_log_alignment = 12;  // an allocation begins on a page boundary

struct Allocations {
  std::mutex mutex;
  std::size_t bytes = 0;
  std::uint32_t last_handle = 0;
  std::map<std::uint32_t, std::shared_ptr<DeviceMemory>> by_handle;
};
Allocations& allocations() {
  static auto* all = new Allocations;
  return *all;
}

bool within(const DeviceMemory& memory, std::uint64_t offset, std::uint64_t length) {
  return offset <= memory.length && length <= memory.length - offset;
}

int check_copy(const DeviceMemory& memory, std::uint64_t offset, std::size_t length) {
  if (offset % granule_bytes != 0 || length % granule_bytes != 0) return EINVAL;
  return within(memory, offset, length) ? 0 : EINVAL;
}

int copy_to(ibv_dm* dm, std::uint64_t offset, const void* from, std::size_t length) {
  const DeviceMemory& memory = *dm_of(dm).memory;
  if (const int error = check_copy(memory, offset, length)) return error;
  std::memcpy(memory.mapping.data() + offset, from, length);
  return 0;
}

int copy_from(void* to, ibv_dm* dm, std::uint64_t offset, std::size_t length) {
  const DeviceMemory& memory = *dm_of(dm).memory;
  if (const int error = check_copy(memory, offset, length)) return error;
  std::memcpy(to, memory.mapping.data() + offset, length);
  return 0;
}

ibv_dm* make_handle(ibv_context* context, std::shared_ptr<DeviceMemory> memory) {
  auto* dm = new Dm{};
  dm->dm = {context, copy_to, copy_from, 0, memory->handle};
  dm->memory = std::move(memory);
  return &dm->dm;
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  if (attr->comp_mask != 0 || attr->length == 0 || attr->log_align_req > max_log_alignment) {
    errno = EINVAL;
    return nullptr;
  }
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  if (attr->length > max_device_memory_bytes - all.bytes) {
    errno = ENOMEM;
    return nullptr;
  }
  link::UniqueFd file = link::make_shared_file("weir-dm", attr->length);
  if (!file) return nullptr;
  auto mapping = link::Mapping::of_file(file.get(), attr->length, link::Mapping::Rights::read_write);
  if (!mapping) return nullptr;
  const std::uint32_t handle = ++all.last_handle;
  auto memory = std::make_shared<DeviceMemory>(std::move(file), std::move(*mapping), attr->length, handle);
  all.by_handle[handle] = memory;
  all.bytes += attr->length;
  return make_handle(context, std::move(memory));
}

ibv_dm* import_device_memory(ibv_context* context, std::uint32_t handle) {
  std::shared_ptr<DeviceMemory> memory;
  {
    const std::lock_guard lock(allocations().mutex);
    const auto found = allocations().by_handle.find(handle);
    if (found != allocations().by_handle.end()) memory = found->second;
  }
  return memory ? make_handle(context, std::move(memory)) : nullptr;
}

int free_dm(ibv_dm* dm) {
  const DeviceMemory& memory = *dm_of(dm).memory;
  if (memory.users.load() != 0) return EBUSY;
  {
    const std::lock_guard lock(allocations().mutex);
    if (allocations().by_handle.erase(memory.handle) != 0) allocations().bytes -= memory.length;
  }
  delete &dm_of(dm);
  return 0;
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access) {
  DeviceMemory& memory = *dm_of(dm).memory;
  // The memory has no address in the application, so a region in it must be zero-based.
  if (!(access & IBV_ACCESS_ZERO_BASED) || !within(memory, offset, length)) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_mr* const mr = register_region(pd, memory.mapping.data() + offset, length, 0, access);
  if (mr == nullptr) return nullptr;
  mr->addr = nullptr;
  memory.users.fetch_add(1);
  reinterpret_cast<Mr*>(mr)->memory_users = &memory.users;
  return mr;
}

}  // namespace weir::verbs

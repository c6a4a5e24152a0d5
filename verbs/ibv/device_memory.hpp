// Device memory (ibv_alloc_dm(3)): memory that the application reaches through verbs only.
#pragma once

#include "link/memory/mapping.hpp"
#include "verbs/ibv/objects.hpp"

namespace weir::verbs {

// Reported to the application and enforced: the most that one process may have allocated at a time.
inline constexpr std::size_t max_device_memory_bytes = std::size_t{1} << 20;

// One allocation; an imported handle shares it.
struct DeviceMemory {
  link::UniqueFd file;  // kept open: neighbours map it through this to use a region in it
  link::Mapping mapping;
  std::size_t length;
  std::uint32_t handle;
  std::atomic<int> users{0};  // memory regions in it
};

struct Dm {
  ibv_dm dm;
  std::shared_ptr<DeviceMemory> memory;
};
// Another handle on an allocation of this process; nullptr: no allocation has that number.
ibv_dm* import_device_memory(ibv_context*, std::uint32_t handle);
inline Dm& dm_of(ibv_dm* dm) { return *reinterpret_cast<Dm*>(dm); }

}  // namespace weir::verbs

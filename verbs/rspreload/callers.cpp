#include "verbs/rspreload/callers.hpp"

#include <infiniband/verbs.h>
#include <link.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::rspreload {
namespace {

struct Text {
  std::uintptr_t begin = 0, end = 0;
  bool has(std::uintptr_t address) const { return address >= begin && address < end; }
};

// The executable parts of the libraries that `inside` points into.
struct Libraries {
  std::array<std::uintptr_t, 3> inside;
  std::array<Text, 3> texts{};
  std::size_t count = 0;
};

int add_if_ours(dl_phdr_info* object, std::size_t, void* argument) {
  auto& libraries = *static_cast<Libraries*>(argument);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    const Text text{begin, begin + part.p_memsz};
    const bool ours = std::ranges::any_of(libraries.inside, [&](std::uintptr_t at) { return text.has(at); });
    if (ours && libraries.count < libraries.texts.size()) libraries.texts[libraries.count++] = text;
  }
  return 0;
}

Libraries find_libraries() {
  Libraries libraries{{reinterpret_cast<std::uintptr_t>(&::rsocket),
                       reinterpret_cast<std::uintptr_t>(&::ibv_get_device_list),
                       reinterpret_cast<std::uintptr_t>(&is_of_rdma_libraries)}};
  ::dl_iterate_phdr(add_if_ours, &libraries);
  return libraries;
}

}  // namespace

bool is_of_rdma_libraries(const void* return_address) {
  static const Libraries libraries = find_libraries();
  const auto at = reinterpret_cast<std::uintptr_t>(return_address);
  return std::ranges::any_of(libraries.texts, [&](const Text& text) { return text.has(at); });
}

}  // namespace weir::rspreload

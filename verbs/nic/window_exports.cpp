#include "verbs/nic/window_exports.hpp"

#include <fcntl.h>

#include "link/memory/mapping.hpp"

namespace weir::verbs {

WindowExports::Placed WindowExports::acquire(const link::MemoryRange& range, std::uint64_t addr) {
  if (!range.shared) return {};
  const std::lock_guard lock(mutex_);
  for (auto& [id, entry] : entries_) {
    if (entry.file != range.file) continue;
    ++entry.regions;
    return {id, range.file_offset};
  }
  link::UniqueFd fd = files_.open(range.file, addr);
  if (!fd) return {};  // nothing to pass on: the region is served as private memory
  const std::uint32_t id = next_++;
  entries_.emplace(id, Entry{range.file, std::move(fd), 1});
  return {id, range.file_offset};
}

bool WindowExports::release(std::uint32_t window) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(window);
  if (found == entries_.end() || --found->second.regions > 0) return false;
  entries_.erase(found);
  return true;
}

std::optional<WindowExports::Export> WindowExports::open(std::uint32_t window) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(window);
  if (found == entries_.end()) return std::nullopt;
  link::UniqueFd copy(::fcntl(found->second.fd.get(), F_DUPFD_CLOEXEC, 0));
  const std::uint64_t bytes = link::file_bytes(copy.get());
  if (!copy || bytes == 0) return std::nullopt;
  return Export{std::move(copy), bytes};
}

}  // namespace weir::verbs

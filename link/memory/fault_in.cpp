#include "link/memory/fault_in.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "link/memory/populate.hpp"
#include "link/memory/shared_backing.hpp"

namespace weir::link {
namespace {

bool may_be_touched(std::uint64_t start, std::uint64_t length, Touch touch) {
  const MemoryRange range = look_up_memory(start, length);
  return range.mapped && (touch == Touch::write ? range.writable : range.readable);
}

}  // namespace

bool fault_in(const void* at, std::uint64_t length, Touch touch) {
  if (length == 0) return true;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uint64_t>(at);
  const std::uint64_t first = start / page * page;
  const std::uint64_t bytes = (start - first + length + page - 1) / page * page;
  if (start + length < start || bytes < length) return false;
  // The NIC names memory by integers: NOLINTNEXTLINE(performance-no-int-to-ptr)
  if (::madvise(reinterpret_cast<void*>(first), bytes,
                touch == Touch::write ? populate_write : populate_read) == 0)
    return true;
  // An older kernel also returns EINVAL, for an advice that it does not know.
  return errno == EINVAL && may_be_touched(start, length, touch);
}

}  // namespace weir::link

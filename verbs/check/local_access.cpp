// The NIC's checks of local memory, in its order: key, domain, bounds, rights, and whether there is memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "verbs/check/checks.hpp"
#include "verbs/check/names.hpp"

namespace weir::check {
namespace {

bool is_mapped(std::uint64_t addr, std::uint64_t length) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = addr / page * page;
  for (std::uint64_t at = begin; at < addr + length; at += page) {
    unsigned char resident = 0;
    if (::mincore(reinterpret_cast<void*>(at), page, &resident) != 0 && errno == ENOMEM) return false;
  }
  return true;
}

}  // namespace

std::optional<LocalFault> local_fault(const ibv_sge& piece, const ibv_pd* pd, bool nic_writes) {
  if (piece.length == 0) return std::nullopt;
  const auto region = objects().region(piece.lkey);
  const std::string key = "lkey " + hex(piece.lkey);
  if (!region) return LocalFault{key + " is of no region that this process registered", {}};
  if (!region->lives()) return LocalFault{key + " is of a region that was deregistered", region};
  if (pd != nullptr && region->pd != pd)
    return LocalFault{key + " is of another protection domain than the queue pair", region};
  if (!region->covers(piece.addr, piece.length)) {
    const std::uint64_t end = region->addr + region->length;
    if (piece.addr >= region->addr && piece.addr <= end)
      return LocalFault{"it ends " + bytes_text(piece.addr + piece.length - end) + " behind its region",
                        region};
    return LocalFault{"it begins outside its region", region};
  }
  if (nic_writes && !(region->access & IBV_ACCESS_LOCAL_WRITE))
    return LocalFault{"its region has no IBV_ACCESS_LOCAL_WRITE, and the NIC writes there", region};
  const std::uint64_t base = region->base + (piece.addr - region->addr);
  if (!is_mapped(base, piece.length)) return LocalFault{"there is no memory any more", region};
  return std::nullopt;
}

}  // namespace weir::check

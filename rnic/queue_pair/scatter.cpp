#include "rnic/queue_pair/scatter.hpp"

#include <algorithm>
#include <cstring>

#include "rnic/memory/arrived.hpp"
#include "rnic/memory/trapped_copy.hpp"

namespace weir::rnic {

bool scatter_into(const NicParts& nic, std::uint32_t pd, const ReceiveWqe& wqe,
                  std::span<const std::byte> payload) {
  const ProtectionTable& table = nic.table;
  // A neighbour may have written nonsense here; whatever we read past the WQE is checked like any sge.
  const std::uint32_t sges = std::min(read_once(wqe.num_sge), max_sge);
  for (std::uint32_t i = 0; i < sges && !payload.empty(); ++i) {
    Sge sge = read_once(wqe.sge[i]);
    if (sge.length == 0) continue;
    const std::size_t length = std::min<std::size_t>(sge.length, payload.size());
    sge.length = static_cast<std::uint32_t>(length);  // what the payload does not reach is not looked at
    if (!table.allows(sge, pd, ProtectionTable::Use::write)) return false;
    const TptEntry& entry = table.entry(sge.lkey);
    void* const at = ProtectionTable::address(entry, sge.addr);
    if ((entry.access & access::on_demand) && !nic.host.traps_copies() &&
        !nic.host.fault_in(at, length, ProtectionTable::Use::write))
      return false;
    const iovec into{at, length};
    if (try_copy({&into, 1}, {}, [&] { std::memcpy(at, payload.data(), length); }) != Trapped::no)
      return false;
    payload = payload.subspan(length);
  }
  return payload.empty();
}

}  // namespace weir::rnic

// Where the initiator puts a SEND's payload: into the CQE, the posted buffers, or the landing ring.
#include <algorithm>
#include <array>

#include "rnic/memory/arrived.hpp"
#include "rnic/memory/copy.hpp"
#include "rnic/same_host/responder.hpp"

namespace weir::rnic {
namespace {

// Above this, one copy through the kernel is cheaper than landing the data
// and copying it again.
constexpr std::uint64_t max_landing_bytes = 8192;

}  // namespace

// Where the payload goes, cheapest first: into the CQE itself, straight into mapped buffers, into the landing
// ring (all without a system call; poll_cq at the target scatters from CQE and landing ring), or through the
// kernel.
Outcome RemoteQueuePair::deliver(const Gather& from, const ReceiveWqe& wqe, ReceiveCqe& cqe) {
  if (from.bytes <= cqe_payload_bytes) {
    cqe.payload_at = PayloadAt::cqe;
    return copied(from, {}, [&] { copy_gather(cqe.payload, from.span()); });
  }
  if (read_once(wqe.num_sge) == 1 && !behind_unfinished_) {
    const Sge sge = read_once(wqe.sge[0]);
    const TptEntry& e = memory_->tpt_entry(sge.lkey);
    if (std::byte* to = memory_->window(e, sge.addr, from.bytes)) {
      const auto own = memory_->own_memory(to, from.bytes);
      const Outcome moved = copied(from, own, [&] { copy_in_order(to, from.span()); });
      if (moved != Outcome::done) return moved;
      cqe.payload_at = PayloadAt::buffer;
      if (memory_->still_there(e, sge.addr, from.bytes)) return Outcome::done;
    }
  }
  if (!behind_unfinished_ && from.bytes <= max_landing_bytes && landing_bytes_ != 0) {
    if (const Outcome landed = land(from, cqe); landed != Outcome::rnr) return landed;
  }
  cqe.payload_at = PayloadAt::buffer;
  return deliver_direct(from, wqe);
}

// `rnr`: the ring has no room at the moment.
Outcome RemoteQueuePair::land(const Gather& from, ReceiveCqe& cqe) {
  const auto need = static_cast<std::uint32_t>((from.bytes + cache_line - 1) / cache_line * cache_line);
  std::uint32_t start = ctx_->landing_tail;
  const std::uint32_t to_end = landing_bytes_ - (start & (landing_bytes_ - 1));
  if (to_end < need) start += to_end;  // a payload does not wrap
  if (start + need - ctx_->seen.landing_head > landing_bytes_) {
    ctx_->seen.landing_head = ctx_->landing_head.load(std::memory_order_acquire);
    if (start + need - ctx_->seen.landing_head > landing_bytes_) return Outcome::rnr;
  }
  std::byte* const to = landing_ + (start & (landing_bytes_ - 1));
  const Outcome moved = copied(from, {}, [&] { copy_gather(to, from.span()); });
  if (moved != Outcome::done) return moved;
  ctx_->landing_tail = start + need;
  cqe.payload_at = PayloadAt::landing;
  cqe.landing_start = start;
  cqe.landing_end = start + need;
  return Outcome::done;
}

Outcome RemoteQueuePair::deliver_direct(const Gather& from, const ReceiveWqe& wqe) {
  std::array<iovec, max_sge> remote;
  std::array<std::uint32_t, max_sge> keys;
  std::uint64_t left = from.bytes;
  std::uint32_t count = 0;
  const std::uint32_t pieces = std::min(read_once(wqe.num_sge), wqe_max_sge_);
  for (std::uint32_t i = 0; i < pieces && left > 0 && count < max_sge; ++i) {
    const Sge sge = read_once(wqe.sge[i]);
    const std::uint64_t length = std::min<std::uint64_t>(sge.length, left);
    if (length == 0) continue;
    void* const at = ProtectionTable::address(memory_->tpt_entry(sge.lkey), sge.addr);
    keys[count] = sge.lkey;
    remote[count++] = {at, length};
    left -= length;
  }
  return outcome_of_write(memory_->write(from.span(), {{remote.data(), count}, {keys.data(), count}}));
}

}  // namespace weir::rnic

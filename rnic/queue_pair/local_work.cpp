#include "rnic/queue_pair/local_work.hpp"

namespace weir::rnic {
namespace {

// Local protection check (IBA 10.2.3): an sge outside its region, or a READ into memory without LOCAL_WRITE.
std::optional<WcStatus> gather(const QpCommon& qp, SendWqe& wqe, Gather& out, ProtectionTable::Use use) {
  if (wqe.inlined) {
    out.pieces[0] = {wqe.inline_data(), wqe.inline_bytes};
    out.count = wqe.inline_bytes != 0 ? 1 : 0;
    out.bytes = wqe.inline_bytes;
    out.is_ours = true;
    return std::nullopt;
  }
  const ProtectionTable& table = qp.nic.table;
  for (std::uint32_t i = 0; i < wqe.num_sge; ++i) {
    const Sge& sge = wqe.sges()[i];
    if (sge.length == 0) continue;
    if (!table.allows(sge, qp.config.pd, use)) return WcStatus::loc_prot_err;
    const TptEntry& entry = table.entry(sge.lkey);
    void* const at = ProtectionTable::address(entry, sge.addr, use);
    if ((entry.access & access::on_demand) && !qp.nic.host.traps_copies() &&
        !qp.nic.host.fault_in(at, sge.length, use))
      return WcStatus::loc_prot_err;
    out.pieces[out.count++] = {at, sge.length};
    out.bytes += sge.length;
  }
  return out.bytes > max_message_bytes ? std::optional(WcStatus::loc_len_err) : std::nullopt;
}

// Checks for requests whose response carries data: an initiator depth (IBA 10.2.5: with none, the queue pair
// can have no READ or atomic outstanding), and for atomics room for the eight bytes that come back.
std::optional<WcStatus> check_reader(const QpCommon& qp, const SendWqe& wqe, Gather& into) {
  if (qp.attributes.max_rd_atomic == 0) return WcStatus::loc_qp_op_err;
  if (wqe.opcode == SendOpcode::rdma_read) return std::nullopt;
  if (into.bytes < atomic_bytes) return WcStatus::loc_len_err;
  into.bytes = atomic_bytes;
  return std::nullopt;
}

}  // namespace

// Gathers and checks the WQE's local memory; returns the error found before any peer is involved.
std::optional<WcStatus> prepare(const QpCommon& qp, SendWqe& wqe, Gather& pieces) {
  const bool reads = brings_data_back(wqe.opcode);
  const auto use = reads ? ProtectionTable::Use::write : ProtectionTable::Use::read;
  if (const auto error = gather(qp, wqe, pieces, use)) return error;
  if (reads) {
    if (const auto error = check_reader(qp, wqe, pieces)) return error;
  }
  if (wqe.opcode == SendOpcode::atomic_write && pieces.bytes != atomic_bytes)  // exactly eight bytes
    return WcStatus::loc_len_err;
  return std::nullopt;
}

// Memory management operations touch only our own table. They complete only after every access under the old
// key is over (IBA 10.6.7.2).
bool execute_local(const QpCommon& qp, SendWqe& wqe) {
  using Bound = WindowTable::Outcome;
  Bound outcome = Bound::refused;
  if (wqe.opcode == SendOpcode::bind_window)
    outcome = qp.nic.windows.bind({.key = wqe.rkey,
                                   .lkey = wqe.binding.lkey,
                                   .access = wqe.binding.access,
                                   .addr = wqe.remote_addr,
                                   .length = wqe.binding.length},
                                  qp.qpn, qp.config.pd);
  else if (qp.nic.windows.invalidate(wqe.imm_be, qp.qpn))
    outcome = Bound::moved;
  if (outcome == Bound::refused) {
    wqe.status = WcStatus::mw_bind_err;
    return false;
  }
  if (outcome == Bound::moved) qp.whole.wait_for_initiators();
  return true;
}

}  // namespace weir::rnic

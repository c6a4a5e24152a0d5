// The extended posting interface: ibv_wr_start, one builder per work request, ibv_wr_complete
// (ibv_wr_post(3)).
//
// The send lock of the queue pair is held from start to complete or abort. The first error sticks: complete
// returns it and posts nothing, as the man page says.
#include <cerrno>

#include "verbs/ibv/objects.hpp"

namespace weir::verbs {
namespace {

void begin_request(ibv_qp_ex* ex, rnic::SendOpcode opcode, std::uint64_t addr, std::uint32_t rkey,
                   std::uint32_t imm_be) {
  Qp& qp = qp_of(ex);
  qp.builder.wqe = nullptr;
  if (qp.builder.error != 0) return;
  rnic::SendRequest request;
  request.wr_id = ex->wr_id;
  request.opcode = opcode;
  request.flags = ex->wr_flags;
  request.imm_be = imm_be;
  request.remote_addr = addr;
  request.rkey = rkey;
  rnic::PostResult result;
  qp.builder.wqe = qp.nic_qp->append(request, result);
  qp.builder.error = errno_of(result);
}

void note(Qp& qp, rnic::PostResult result) {
  if (result != rnic::PostResult::ok && qp.builder.error == 0) qp.builder.error = errno_of(result);
}

void wr_start(ibv_qp_ex* ex) {
  Qp& qp = qp_of(ex);
  qp.nic_qp->begin_posting();
  qp.builder = {};
}

int wr_complete(ibv_qp_ex* ex) {
  Qp& qp = qp_of(ex);
  const int error = qp.builder.error;
  if (error != 0)
    qp.nic_qp->abort_posting();
  else
    qp.nic_qp->ring_doorbell();
  return error;
}

void wr_abort(ibv_qp_ex* ex) { qp_of(ex).nic_qp->abort_posting(); }

void wr_send(ibv_qp_ex* ex) { begin_request(ex, rnic::SendOpcode::send, 0, 0, 0); }
void wr_send_imm(ibv_qp_ex* ex, __be32 imm) { begin_request(ex, rnic::SendOpcode::send_with_imm, 0, 0, imm); }
void wr_rdma_write(ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t addr) {
  begin_request(ex, rnic::SendOpcode::rdma_write, addr, rkey, 0);
}
void wr_rdma_write_imm(ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t addr, __be32 imm) {
  begin_request(ex, rnic::SendOpcode::rdma_write_with_imm, addr, rkey, imm);
}
void wr_rdma_read(ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t addr) {
  begin_request(ex, rnic::SendOpcode::rdma_read, addr, rkey, 0);
}

void wr_atomic(ibv_qp_ex* ex, rnic::SendOpcode opcode, std::uint32_t rkey, std::uint64_t addr,
               rnic::AtomicOperands operands) {
  begin_request(ex, opcode, addr, rkey, 0);
  if (rnic::SendWqe* wqe = qp_of(ex).builder.wqe) wqe->atomic = operands;
}
void wr_atomic_cmp_swp(ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t addr, std::uint64_t compare,
                       std::uint64_t swap) {
  wr_atomic(ex, rnic::SendOpcode::compare_and_swap, rkey, addr, {compare, swap});
}
void wr_atomic_fetch_add(ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t addr, std::uint64_t add) {
  wr_atomic(ex, rnic::SendOpcode::fetch_and_add, rkey, addr, {add, 0});
}

void wr_atomic_write(ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t addr, const void* value) {
  begin_request(ex, rnic::SendOpcode::atomic_write, addr, rkey, 0);
  Qp& qp = qp_of(ex);
  if (qp.builder.wqe == nullptr) return;
  const auto* bytes = static_cast<const std::byte*>(value);
  note(qp, qp.nic_qp->add_inline(*qp.builder.wqe, {bytes, rnic::atomic_bytes}));
}

void wr_send_inv(ibv_qp_ex* ex, std::uint32_t rkey) {
  begin_request(ex, rnic::SendOpcode::send_with_invalidate, 0, 0, rkey);
}
void wr_local_inv(ibv_qp_ex* ex, std::uint32_t rkey) {
  begin_request(ex, rnic::SendOpcode::local_invalidate, 0, 0, rkey);
}
void wr_bind_mw(ibv_qp_ex* ex, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
  Qp& qp = qp_of(ex);
  const auto request = mw->type == IBV_MW_TYPE_2 ? bind_request(*mw, rkey, *info) : std::nullopt;
  if (!request && qp.builder.error == 0) qp.builder.error = EINVAL;
  begin_request(ex, rnic::SendOpcode::bind_window, request ? request->remote_addr : 0, rkey, 0);
  if (qp.builder.wqe != nullptr) qp.builder.wqe->binding = request->binding;
}

void wr_set_xrc_srqn(ibv_qp_ex* ex, std::uint32_t srqn) {
  if (rnic::SendWqe* wqe = qp_of(ex).builder.wqe) wqe->remote_srqn = srqn;
}

void wr_set_ud_addr(ibv_qp_ex* ex, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  Qp& qp = qp_of(ex);
  if (qp.builder.wqe == nullptr) return;
  const auto* address = reinterpret_cast<const Ah*>(ah);
  qp.builder.wqe->datagram = datagram_address(address, qpn, qkey);
  qp.builder.wqe->path_kbps = address != nullptr ? address->path_kbps : 0;
}

void wr_set_sge_list(ibv_qp_ex* ex, std::size_t count, const ibv_sge* list) {
  Qp& qp = qp_of(ex);
  if (qp.builder.wqe != nullptr)
    note(qp, qp.nic_qp->set_sges(*qp.builder.wqe, sges_of(list, static_cast<int>(count))));
}

void wr_set_sge(ibv_qp_ex* ex, std::uint32_t lkey, std::uint64_t addr, std::uint32_t length) {
  const ibv_sge sge{addr, length, lkey};
  wr_set_sge_list(ex, 1, &sge);
}

void wr_set_inline_data_list(ibv_qp_ex* ex, std::size_t count, const ibv_data_buf* list) {
  Qp& qp = qp_of(ex);
  if (qp.builder.wqe == nullptr) return;
  if (count > rnic::max_sge) return note(qp, rnic::PostResult::too_many_sges);
  qp.builder.wqe->inlined = true;
  for (const ibv_data_buf& piece : std::span(list, count))
    note(qp,
         qp.nic_qp->add_inline(*qp.builder.wqe, {static_cast<const std::byte*>(piece.addr), piece.length}));
}

void wr_set_inline_data(ibv_qp_ex* ex, void* addr, std::size_t length) {
  const ibv_data_buf buffer{addr, length};
  wr_set_inline_data_list(ex, 1, &buffer);
}

}  // namespace

void install_builders(ibv_qp_ex& ex) {
  ex.wr_start = wr_start;
  ex.wr_complete = wr_complete;
  ex.wr_abort = wr_abort;
  ex.wr_send = wr_send;
  ex.wr_send_imm = wr_send_imm;
  ex.wr_rdma_write = wr_rdma_write;
  ex.wr_rdma_write_imm = wr_rdma_write_imm;
  ex.wr_rdma_read = wr_rdma_read;
  ex.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
  ex.wr_atomic_fetch_add = wr_atomic_fetch_add;
  ex.wr_atomic_write = wr_atomic_write;
  ex.wr_send_inv = wr_send_inv;
  ex.wr_local_inv = wr_local_inv;
  ex.wr_bind_mw = wr_bind_mw;
  ex.wr_set_xrc_srqn = wr_set_xrc_srqn;
  ex.wr_set_ud_addr = wr_set_ud_addr;
  ex.wr_set_sge = wr_set_sge;
  ex.wr_set_sge_list = wr_set_sge_list;
  ex.wr_set_inline_data = wr_set_inline_data;
  ex.wr_set_inline_data_list = wr_set_inline_data_list;
}

}  // namespace weir::verbs

// ibv_post_send, ibv_post_recv, ibv_post_wq_recv, ibv_post_srq_recv: translate work requests into
// WQEs, then ring the doorbell.
#include <cerrno>

#include "verbs/ibv/objects.hpp"

namespace weir::verbs {

int errno_of(rnic::PostResult result) {
  switch (result) {
    case rnic::PostResult::ok:
      return 0;
    case rnic::PostResult::full:
      return ENOMEM;
    case rnic::PostResult::bad_state:
    case rnic::PostResult::too_many_sges:
    case rnic::PostResult::too_long_inline:
    case rnic::PostResult::bad_opcode:
    case rnic::PostResult::no_address:
      return EINVAL;
  }
  return EINVAL;
}

namespace {

rnic::SendRequest request_of(const ibv_send_wr& wr, rnic::QpType type) {
  rnic::SendRequest r;
  r.wr_id = wr.wr_id;
  r.opcode = static_cast<rnic::SendOpcode>(wr.opcode);
  r.flags = wr.send_flags;
  r.imm_be = wr.imm_data;
  if (type == rnic::QpType::ud) {
    const auto* ah = reinterpret_cast<const Ah*>(wr.wr.ud.ah);
    r.datagram = datagram_address(ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
    r.path_kbps = ah->path_kbps;
  } else if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    r.remote_addr = wr.wr.atomic.remote_addr;
    r.rkey = wr.wr.atomic.rkey;
    r.atomic = {wr.wr.atomic.compare_add, wr.wr.atomic.swap};
  } else {
    r.remote_addr = wr.wr.rdma.remote_addr;
    r.rkey = wr.wr.rdma.rkey;
  }
  return r;
}

rnic::PostResult append_bind(rnic::QueuePair& qp, const ibv_send_wr& wr) {
  const ibv_mw* mw = wr.bind_mw.mw;
  // Only ibv_bind_mw binds a window of type 1.
  if (mw == nullptr || mw->type != IBV_MW_TYPE_2) return rnic::PostResult::bad_opcode;
  auto request = bind_request(*mw, wr.bind_mw.rkey, wr.bind_mw.bind_info);
  if (!request) return rnic::PostResult::bad_opcode;
  request->wr_id = wr.wr_id;
  request->flags = wr.send_flags;
  rnic::PostResult result;
  qp.append(*request, result);
  return result;
}

rnic::PostResult append(rnic::QueuePair& qp, const ibv_send_wr& wr) {
  if (wr.num_sge < 0 || static_cast<unsigned>(wr.num_sge) > rnic::max_sge)
    return rnic::PostResult::too_many_sges;
  if (qp.config().type == rnic::QpType::ud && wr.wr.ud.ah == nullptr) return rnic::PostResult::no_address;
  if (wr.opcode == IBV_WR_BIND_MW) return append_bind(qp, wr);
  rnic::PostResult result;
  rnic::SendRequest request = request_of(wr, qp.config().type);
  if (qp.config().type == rnic::QpType::xrc_send) request.remote_srqn = wr.qp_type.xrc.remote_srqn;
  rnic::SendWqe* wqe = qp.append(request, result);
  if (wqe == nullptr) return result;
  if (wr.send_flags & IBV_SEND_INLINE) {
    wqe->inlined = true;
    for (int i = 0; i < wr.num_sge && result == rnic::PostResult::ok; ++i) {
      const ibv_sge& piece = wr.sg_list[i];
      result = qp.add_inline(*wqe, {reinterpret_cast<const std::byte*>(piece.addr), piece.length});
    }
  } else {
    result = qp.set_sges(*wqe, sges_of(wr.sg_list, wr.num_sge));
  }
  if (result != rnic::PostResult::ok) qp.retract();
  return result;
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  rnic::QueuePair& nic_qp = *qp_of(qp).nic_qp;
  int error = 0;
  nic_qp.begin_posting();
  for (; wr != nullptr; wr = wr->next) {
    error = errno_of(append(nic_qp, *wr));
    if (error == 0) continue;
    *bad = wr;
    break;
  }
  nic_qp.ring_doorbell();  // post the requests before the bad one
  return error;
}

namespace {

int post_receives(rnic::QueuePair& nic_qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const std::lock_guard lock(nic_qp.receive_lock());
  int error = 0;
  for (; wr != nullptr; wr = wr->next) {
    const bool sane = wr->num_sge >= 0 && static_cast<unsigned>(wr->num_sge) <= rnic::max_sge;
    error = sane ? errno_of(nic_qp.post_recv(wr->wr_id, sges_of(wr->sg_list, wr->num_sge))) : EINVAL;
    if (error == 0) continue;
    *bad = wr;
    break;
  }
  nic_qp.recv_doorbell();
  return error;
}

}  // namespace

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return post_receives(*qp_of(qp).nic_qp, wr, bad);
}

int post_wq_recv(ibv_wq* wq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return post_receives(*wq_of(wq).nic_qp, wr, bad);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  rnic::SharedReceiveQueue& nic_srq = *srq_of(srq).nic_srq;
  rnic::Tracer* const tracer = context_of(srq->context).adapter().tracer();
  int error = 0;
  for (; wr != nullptr; wr = wr->next) {
    const bool sane = wr->num_sge >= 0 && static_cast<unsigned>(wr->num_sge) <= nic_srq.max_sges();
    const auto posted = sane ? nic_srq.post(wr->wr_id, sges_of(wr->sg_list, wr->num_sge), tracer)
                             : rnic::SharedReceiveQueue::Posted::full;
    if (posted == rnic::SharedReceiveQueue::Posted::ok) continue;
    *bad = wr;
    error = sane ? ENOMEM : EINVAL;
    break;
  }
  if (nic_srq.take_parked()) context_of(srq->context).adapter().kick_all_parked_on(nic_srq);
  return error;
}

}  // namespace weir::verbs

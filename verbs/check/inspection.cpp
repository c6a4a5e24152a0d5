#include "verbs/check/inspection.hpp"

#include "verbs/ibv/objects.hpp"

using namespace weir::verbs;
using weir::rnic::Qpn;

extern "C" {

void weir_inspect_target(ibv_qp* qp, const weir::rnic::RemoteAccess* wanted, WeirTarget* out) {
  *out = {};
  const weir::rnic::QueuePair& own = *qp_of(qp).nic_qp;
  const weir::rnic::QpAttributes attributes = own.attributes();
  if (attributes.path.via != weir::rnic::Via::same_host) return;
  NicProcess& nic = *context_of(qp->context).nic;
  const Qpn target = attributes.destination;
  const weir::rnic::PeerPtr peer = nic.adapter().host().peer(target.slot(), weir::rnic::HostPort::Wait::no);
  if (peer == nullptr) return;
  weir::rnic::SegmentHeader& segment = peer->segment();
  const weir::rnic::QpContext& context = segment.qps[target.index()];
  out->is_here = true;
  out->is_ours = target.slot() == nic.adapter().slot();
  if (const auto process = nic.link().connected(target.slot())) out->pid = process->pid();
  out->exists = segment.qp_exists[target.index()].load(std::memory_order_relaxed) != 0;
  out->state = static_cast<ibv_qp_state>(context.state.load(std::memory_order_acquire));
  out->is_connected_to_us = context.remote_qpn.load(std::memory_order_acquire) == qp->qp_num;
  const std::uint32_t rights = context.access.load(std::memory_order_relaxed);
  out->answers_reads = rights & weir::rnic::access::responder_depth;
  out->queue_pair_access = rights & ~weir::rnic::access::responder_depth;
  out->refusal = weir::rnic::why_refused(*peer, target, *wanted);
  const weir::rnic::TptEntry& region = peer->tpt_entry(wanted->rkey);
  if (region.key.load(std::memory_order_acquire) != wanted->rkey) return;
  out->region_addr = region.addr;
  out->region_length = region.length;
  out->region_access = region.access & ~(weir::rnic::access::local_read | weir::rnic::access::null);
}

std::size_t weir_unpolled(ibv_cq* cq) { return cq_of(cq).nic_cq->unpolled(); }

}  // extern "C"

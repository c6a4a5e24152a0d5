// Extended reliable connections: domains, numbers of XRC SRQs, and further handles on XRC_RECV queue pairs
// (ibv_open_xrcd(3), ibv_get_srq_num(3), ibv_open_qp(3)).
#include <cerrno>
#include <map>

#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/xrc_domains.hpp"

namespace weir::verbs {
namespace {

struct Shared {
  std::mutex mutex;
  std::map<std::uint32_t, std::vector<Qp*>> handles;  // by QPN
};
Shared& shared_queue_pairs() {
  static auto* all = new Shared;
  return *all;
}

// Finds the queue pair through a handle of this process, else by its number; nullptr: not in that
// domain. Call with the mutex held.
rnic::QueuePair* find_or_open(Context& context, const ibv_qp_open_attr& attr) {
  const std::uint64_t domain = xrcd_of(attr.xrcd).identity;
  const auto found = shared_queue_pairs().handles.find(attr.qp_num);
  if (found == shared_queue_pairs().handles.end())
    return context.adapter().open_qp(rnic::Qpn(attr.qp_num), domain);
  rnic::QueuePair* const nic_qp = found->second.front()->nic_qp;
  return nic_qp->config().xrcd == domain ? nic_qp : nullptr;
}

}  // namespace

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* init) {
  constexpr std::uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if (init->comp_mask != needed) {
    errno = EINVAL;
    return nullptr;
  }
  const auto identity =
      XrcDomains::of_this_process().open(*init, context_of(context).nic->link().directory());
  if (!identity) return nullptr;
  auto* xrcd = new Xrcd{};
  xrcd->xrcd.context = context;
  xrcd->identity = *identity;
  return &xrcd->xrcd;
}

int close_xrcd(ibv_xrcd* xrcd) {
  Xrcd& x = xrcd_of(xrcd);
  if (x.users.load() != 0) return EBUSY;
  XrcDomains::of_this_process().close(x.identity);
  delete &x;
  return 0;
}

int get_srq_num(ibv_srq* srq, std::uint32_t* number) {
  const rnic::SharedReceiveQueue& nic_srq = *srq_of(srq).nic_srq;
  if (nic_srq.xrcd() == 0) return EINVAL;
  *number = nic_srq.number().value();
  return 0;
}

void share_queue_pair(Qp& qp) {
  const std::lock_guard lock(shared_queue_pairs().mutex);
  shared_queue_pairs().handles[qp.ex.qp_base.qp_num].push_back(&qp);
}

bool last_handle_of(Qp& qp) {
  const std::lock_guard lock(shared_queue_pairs().mutex);
  auto& handles = shared_queue_pairs().handles;
  const auto found = handles.find(qp.ex.qp_base.qp_num);
  if (found == handles.end()) return true;
  std::erase(found->second, &qp);
  if (found->second.empty()) {
    handles.erase(found);
    return true;
  }
  qp.nic_qp->set_cookie(found->second.front());  // a remaining handle gets its events
  return false;
}

// Another holder of the queue pair may have modified it.
void refresh_shared(Qp& qp) {
  const rnic::QpAttributes shared = qp.nic_qp->shared_attributes();
  qp.attr.qp_access_flags = shared.access;
  qp.attr.min_rnr_timer = shared.min_rnr_timer;
  if ((qp.attr.max_dest_rd_atomic != 0) != (shared.max_dest_rd_atomic != 0))
    qp.attr.max_dest_rd_atomic = shared.max_dest_rd_atomic;
  if (shared.destination.slot() != 0) qp.attr.dest_qp_num = shared.destination.value();
}

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  constexpr std::uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if ((attr->comp_mask & needed) != needed || (attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT)) ||
      attr->qp_type != IBV_QPT_XRC_RECV) {
    errno = EINVAL;
    return nullptr;
  }
  const std::lock_guard lock(shared_queue_pairs().mutex);
  rnic::QueuePair* const nic_qp = find_or_open(context_of(context), *attr);
  if (nic_qp == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  auto* qp = new Qp{};
  qp->nic_qp = nic_qp;
  refresh_shared(*qp);
  qp->xrcd = &xrcd_of(attr->xrcd);
  qp->xrcd->users.fetch_add(1);
  ibv_qp& q = qp->ex.qp_base;
  q.context = context;
  q.qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : nullptr;
  q.handle = q.qp_num = attr->qp_num;
  q.state = static_cast<ibv_qp_state>(qp->nic_qp->state());
  q.qp_type = IBV_QPT_XRC_RECV;
  pthread_mutex_init(&q.mutex, nullptr);
  pthread_cond_init(&q.cond, nullptr);
  std::vector<Qp*>& handles = shared_queue_pairs().handles[attr->qp_num];
  handles.push_back(qp);
  if (handles.size() == 1) nic_qp->set_cookie(qp);
  return &q;
}

}  // namespace weir::verbs

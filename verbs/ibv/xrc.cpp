// Extended reliable connections: domains, the numbers of XRC SRQs, further handles on XRC_RECV queue pairs
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
  qp.nic_qp->set_cookie(found->second.front());  // its events go on to who is left
  return false;
}

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  constexpr std::uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if ((attr->comp_mask & needed) != needed || (attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT)) ||
      attr->qp_type != IBV_QPT_XRC_RECV) {
    errno = EINVAL;
    return nullptr;
  }
  const std::lock_guard lock(shared_queue_pairs().mutex);
  const auto found = shared_queue_pairs().handles.find(attr->qp_num);
  if (found == shared_queue_pairs().handles.end() ||
      found->second.front()->nic_qp->config().xrcd != xrcd_of(attr->xrcd).identity) {
    errno = EINVAL;
    return nullptr;
  }
  const Qp& original = *found->second.front();
  auto* qp = new Qp{};
  qp->nic_qp = original.nic_qp;
  qp->attr = original.attr;
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
  found->second.push_back(qp);
  return &q;
}

}  // namespace weir::verbs

// Shared receive queues.
#include <algorithm>
#include <cerrno>

#include "verbs/ibv/domains.hpp"
#include "verbs/ibv/objects.hpp"

using namespace weir::verbs;

namespace weir::verbs {

namespace {

ibv_srq* create(ibv_context* context, ibv_pd* pd, void* cookie, ibv_srq_attr& attr, Xrcd* xrcd, ibv_cq* cq) {
  if (attr.max_wr == 0 || attr.max_wr > rnic::max_wr || attr.max_sge > rnic::max_sge) {
    errno = EINVAL;
    return nullptr;
  }
  attr.max_sge = std::max(attr.max_sge, 1u);
  rnic::XrcConfig xrc;
  if (xrcd != nullptr) xrc = {xrcd->identity, cq_of(cq).nic_cq};
  auto* nic_srq = context_of(context).adapter().create_srq(pd_of(pd).number, attr.max_wr, attr.max_sge, xrc);
  if (nic_srq == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* srq = make_object<Srq>(pd, Resource::srq);
  if (srq == nullptr) {
    context_of(context).adapter().destroy(nic_srq);
    errno = ENOMEM;
    return nullptr;
  }
  srq->nic_srq = nic_srq;
  srq->xrcd = xrcd;
  nic_srq->cookie = srq;
  srq->srq.context = context;
  srq->srq.srq_context = cookie;
  srq->srq.pd = pd;
  srq->srq.handle = nic_srq->index();
  pthread_mutex_init(&srq->srq.mutex, nullptr);
  pthread_cond_init(&srq->srq.cond, nullptr);
  pd_of(pd).users.fetch_add(1);
  if (xrcd != nullptr) xrcd->users.fetch_add(1);
  return &srq->srq;
}

}  // namespace

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* init) {
  constexpr std::uint32_t xrc_only = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  constexpr std::uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | xrc_only;
  const bool typed = init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE;
  const ibv_srq_type type = typed ? init->srq_type : IBV_SRQT_BASIC;
  const bool xrc = type == IBV_SRQT_XRC;
  if ((init->comp_mask & ~known) || (!xrc && type != IBV_SRQT_BASIC)) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  const bool complete = (init->comp_mask & IBV_SRQ_INIT_ATTR_PD) && init->pd != nullptr &&
                        (!xrc || ((init->comp_mask & xrc_only) == xrc_only && init->xrcd && init->cq));
  if (!complete) {
    errno = EINVAL;
    return nullptr;
  }
  return create(context, init->pd, init->srq_context, init->attr, xrc ? &xrcd_of(init->xrcd) : nullptr,
                xrc ? init->cq : nullptr);
}

}  // namespace weir::verbs

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  return create(pd->context, pd, init->srq_context, init->attr, nullptr, nullptr);
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  weir::rnic::SharedReceiveQueue& nic_srq = *srq_of(srq).nic_srq;
  if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) return EINVAL;
  if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > nic_srq.max_wrs()) return EINVAL;
  if ((mask & IBV_SRQ_MAX_WR) && attr->max_wr > nic_srq.max_wrs()) return EOPNOTSUPP;
  if (mask & IBV_SRQ_LIMIT) nic_srq.context().limit.store(attr->srq_limit);
  return 0;
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  const weir::rnic::SharedReceiveQueue& nic_srq = *srq_of(srq).nic_srq;
  *attr = {nic_srq.max_wrs(), nic_srq.max_sges(), nic_srq.context().limit.load()};
  return 0;
}

int ibv_destroy_srq(ibv_srq* srq) {
  Srq& s = srq_of(srq);
  if (s.nic_srq->attached_qps.load() != 0) return EBUSY;
  Context& context = context_of(srq->context);
  context.adapter().destroy(s.nic_srq);
  const auto delivered = forget_async_events(context, s.async_delivered, [&](const ibv_async_event& e) {
    return e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && e.element.srq == srq;
  });
  wait_for_acks(*srq, srq->events_completed, delivered);
  if (s.xrcd != nullptr) s.xrcd->users.fetch_sub(1);
  pthread_cond_destroy(&srq->cond);
  pthread_mutex_destroy(&srq->mutex);
  ibv_pd* const pd = srq->pd;
  delete_object(pd, &s, Resource::srq);
  drop_user(pd_of(pd));
  return 0;
}

}  // extern "C"

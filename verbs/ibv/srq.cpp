// Shared receive queues.
#include <algorithm>
#include <cerrno>

#include "verbs/ibv/domains.hpp"
#include "verbs/ibv/event_count.hpp"
#include "verbs/ibv/objects.hpp"

using namespace weir::verbs;

namespace weir::verbs {

ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex* init) {
  constexpr std::uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  const bool basic = !(init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || init->srq_type == IBV_SRQT_BASIC;
  if ((init->comp_mask & ~known) || !basic || !(init->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  ibv_srq_init_attr plain{init->srq_context, init->attr};
  ibv_srq* srq = ibv_create_srq(init->pd, &plain);
  init->attr = plain.attr;
  return srq;
}

}  // namespace weir::verbs

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  ibv_srq_attr& attr = init->attr;
  if (attr.max_wr == 0 || attr.max_wr > weir::rnic::max_wr || attr.max_sge > weir::rnic::max_sge) {
    errno = EINVAL;
    return nullptr;
  }
  attr.max_sge = std::max(attr.max_sge, 1u);
  auto* nic_srq = context_of(pd->context).adapter().create_srq(pd_of(pd).number, attr.max_wr, attr.max_sge);
  if (nic_srq == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* srq = make_object<Srq>(pd, Resource::srq);
  if (srq == nullptr) {
    context_of(pd->context).adapter().destroy(nic_srq);
    errno = ENOMEM;
    return nullptr;
  }
  srq->nic_srq = nic_srq;
  nic_srq->cookie = srq;
  srq->srq.context = pd->context;
  srq->srq.srq_context = init->srq_context;
  srq->srq.pd = pd;
  srq->srq.handle = nic_srq->index();
  pthread_mutex_init(&srq->srq.mutex, nullptr);
  pthread_cond_init(&srq->srq.cond, nullptr);
  pd_of(pd).users.fetch_add(1);
  return &srq->srq;
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  weir::rnic::SharedReceiveQueue& nic_srq = *srq_of(srq).nic_srq;
  if (mask & IBV_SRQ_MAX_WR) return attr->max_wr <= nic_srq.max_wrs() ? 0 : EOPNOTSUPP;
  if (!(mask & IBV_SRQ_LIMIT)) return 0;
  if (attr->srq_limit > nic_srq.max_wrs()) return EINVAL;
  nic_srq.context().limit.store(attr->srq_limit);
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
  std::uint32_t delivered = 0;
  {
    const std::lock_guard lock(context.async_mutex);
    const std::size_t undelivered = std::erase_if(context.async_queue, [&](const ibv_async_event& e) {
      return e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && e.element.srq == srq;
    });
    discard_events(context.async_eventfd, undelivered);
    delivered = s.async_delivered;
  }
  wait_for_acks(*srq, srq->events_completed, delivered);
  pthread_cond_destroy(&srq->cond);
  pthread_mutex_destroy(&srq->mutex);
  ibv_pd* const pd = srq->pd;
  delete_object(pd, &s, Resource::srq);
  drop_user(pd_of(pd));
  return 0;
}

}  // extern "C"

// Work queues: ibv_create_wq(3), ibv_modify_wq(3), ibv_destroy_wq. Receives are posted to them as to queue
// pairs (posting.cpp) and complete with the work queue's number as `qp_num`.
//
// In RESET a work queue has no receives and accepts none; in ERR its receives are flushed. Frames that
// arrive in either state are lost.
#include <algorithm>
#include <cerrno>

#include "verbs/ibv/domains.hpp"
#include "verbs/ibv/objects.hpp"

namespace weir::verbs {
namespace {

using rnic::QpState;

// Returns 0 or an errno.
int check(const ibv_context* context, const ibv_wq_init_attr& init) {
  const bool flags = (init.comp_mask & IBV_WQ_INIT_ATTR_FLAGS) && init.create_flags != 0;
  if ((init.comp_mask & ~unsigned{IBV_WQ_INIT_ATTR_FLAGS}) || flags) return EOPNOTSUPP;
  if (init.wq_type != IBV_WQT_RQ) return EINVAL;
  if (init.max_wr == 0 || init.max_wr > rnic::max_wr || init.max_sge > rnic::max_sge) return EINVAL;
  const bool ours =
      init.pd != nullptr && init.pd->context == context && init.cq != nullptr && init.cq->context == context;
  return ours ? 0 : EINVAL;
}

rnic::QpConfig config_of(const ibv_wq_init_attr& init, Wq* cookie) {
  rnic::QpConfig config;
  config.type = rnic::QpType::work_queue;
  config.pd = pd_of(init.pd).number;
  config.recv_cq = cq_of(init.cq).nic_cq;
  config.caps.max_recv_wr = init.max_wr;
  config.caps.max_recv_sge = std::max(init.max_sge, 1u);
  config.cookie = cookie;
  return config;
}

ibv_wq_state state_of(const Wq& wq) {
  switch (wq.nic_qp->state()) {
    case QpState::reset:
      return IBV_WQS_RESET;
    case QpState::err:
      return IBV_WQS_ERR;
    default:
      return IBV_WQS_RDY;
  }
}

// A work queue leaves ERR only through RESET, and enters ERR only once it was ready.
bool may_move(ibv_wq_state from, ibv_wq_state to) {
  switch (to) {
    case IBV_WQS_RESET:
      return true;
    case IBV_WQS_RDY:
      return from != IBV_WQS_ERR;
    case IBV_WQS_ERR:
      return from != IBV_WQS_RESET;
    default:
      return false;
  }
}

void move(rnic::QueuePair& nic_qp, ibv_wq_state to) {
  constexpr rnic::QpAttributes none;
  nic_qp.modify(to == IBV_WQS_RESET ? QpState::reset : to == IBV_WQS_RDY ? QpState::rtr : QpState::err, none);
}

}  // namespace

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* init) {
  if (const int error = check(context, *init); error != 0) {
    errno = error;
    return nullptr;
  }
  auto* wq = make_object<Wq>(init->pd, Resource::wq);
  if (wq == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  const rnic::QpConfig config = config_of(*init, wq);
  wq->nic_qp = context_of(context).adapter().create_qp(config);
  if (wq->nic_qp == nullptr) {
    delete_object(init->pd, wq, Resource::wq);
    errno = ENOMEM;
    return nullptr;
  }
  init->max_sge = config.caps.max_recv_sge;
  wq->wq.context = context;
  wq->wq.pd = init->pd;
  wq->wq.cq = init->cq;
  wq->wq.handle = wq->wq.wq_num = wq->nic_qp->qpn().value();
  wq->wq.state = IBV_WQS_RESET;
  wq->wq.wq_type = init->wq_type;
  wq->wq.post_recv = post_wq_recv;
  pd_of(init->pd).users.fetch_add(1);
  return &wq->wq;  // the inline ibv_create_wq initializes its mutex and condition variable
}

int modify_wq(ibv_wq* wq, ibv_wq_attr* attr) {
  constexpr std::uint32_t known = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS;
  if (attr->attr_mask == 0 || (attr->attr_mask & ~known)) return EINVAL;
  if ((attr->attr_mask & IBV_WQ_ATTR_FLAGS) && attr->flags_mask != 0) return EOPNOTSUPP;
  Wq& w = wq_of(wq);
  const ibv_wq_state from = state_of(w);
  if ((attr->attr_mask & IBV_WQ_ATTR_CURR_STATE) && attr->curr_wq_state != from) return EINVAL;
  if (!(attr->attr_mask & IBV_WQ_ATTR_STATE)) return 0;
  if (!may_move(from, attr->wq_state)) return EINVAL;
  move(*w.nic_qp, attr->wq_state);
  wq->state = attr->wq_state;
  return 0;
}

int destroy_wq(ibv_wq* wq) {
  Wq& w = wq_of(wq);
  if (w.tables.load() != 0) return EBUSY;
  Context& context = context_of(wq->context);
  context.adapter().destroy(w.nic_qp);
  const auto delivered = forget_async_events(context, w.async_delivered, [&](const ibv_async_event& e) {
    return e.event_type == IBV_EVENT_WQ_FATAL && e.element.wq == wq;
  });
  wait_for_acks(*wq, wq->events_completed, delivered);
  pthread_cond_destroy(&wq->cond);
  pthread_mutex_destroy(&wq->mutex);
  ibv_pd* const pd = wq->pd;
  delete_object(pd, &w, Resource::wq);
  drop_user(pd_of(pd));
  return 0;
}

}  // namespace weir::verbs

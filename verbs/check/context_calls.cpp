// The operations of a context: the inline functions of <infiniband/verbs.h> call them through its tables, so
// the checked ones are put there when the context is opened, and no other context is any slower.
#include <array>
#include <map>
#include <shared_mutex>

#include "verbs/check/checks.hpp"
#include "verbs/check/creation.hpp"
#include "verbs/check/inside.hpp"
#include "verbs/check/next_calls.hpp"

namespace weir::check {
namespace {

struct Contexts {
  std::shared_mutex mutex;
  std::map<const ibv_context*, ContextCalls> behind;
};
Contexts& contexts() {
  static auto* const one = new Contexts;
  return *one;
}

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  const CallSite at = WEIR_CALL_SITE;
  const Inside inside;
  const auto call = next_of(qp->context)->ops.post_send;
  const auto record = record_of(qp);
  if (record == nullptr) return call(qp, wr, bad);
  const std::lock_guard lock(record->mutex);
  about_to_send(*record, wr, at);
  ibv_send_wr* refused = nullptr;
  const int error = call(qp, wr, &refused);
  if (error != 0) sends_refused(*record, *bad = refused, error, at);
  return error;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const CallSite at = WEIR_CALL_SITE;
  const Inside inside;
  const auto call = next_of(qp->context)->ops.post_recv;
  const auto record = record_of(qp);
  if (record == nullptr) return call(qp, wr, bad);
  const std::lock_guard lock(record->mutex);
  about_to_receive(record->receives, wr, at);
  ibv_recv_wr* refused = nullptr;
  const int error = call(qp, wr, &refused);
  if (error != 0) receives_refused(*record, *bad = refused, error, at);
  return error;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const CallSite at = WEIR_CALL_SITE;
  const Inside inside;
  const auto call = next_of(srq->context)->ops.post_srq_recv;
  const auto record = record_of(srq);
  if (record == nullptr) return call(srq, wr, bad);
  const std::lock_guard lock(record->mutex);
  about_to_receive(record->receives, wr, at);
  ibv_recv_wr* refused = nullptr;
  const int error = call(srq, wr, &refused);
  if (error != 0) take_back(record->receives, *bad = refused);
  return error;
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* wc) {
  const CallSite at = WEIR_CALL_SITE;
  const Inside inside;
  if (const auto record = record_of(cq)) about_to_poll(*record, at);
  const int got = next_of(cq->context)->ops.poll_cq(cq, count, wc);
  for (int i = 0; i < got; ++i) completed(wc[i], at);
  return got;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  const CallSite at = WEIR_CALL_SITE;
  const Inside inside;
  if (const auto record = record_of(cq)) about_to_arm(*record, at);
  return next_of(cq->context)->ops.req_notify_cq(cq, solicited_only);
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init) {
  const Inside inside;
  ibv_qp* const qp = next_of(context)->create_qp_ex(context, init);
  if (qp == nullptr) return nullptr;
  const bool builders = (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  queue_pair_created(qp, {.caps = init->cap, .signals_all = init->sq_sig_all != 0, .has_builders = builders},
                     __builtin_return_address(0));
  return qp;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* init) {
  const Inside inside;
  ibv_cq_ex* const cq = next_of(context)->create_cq_ex(context, init);
  if (cq != nullptr) completion_queue_created(ibv_cq_ex_to_cq(cq), __builtin_return_address(0));
  return cq;
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* init) {
  const Inside inside;
  ibv_srq* const srq = next_of(context)->create_srq_ex(context, init);
  if (srq != nullptr) shared_receive_queue_created(srq, __builtin_return_address(0));
  return srq;
}

}  // namespace

const ContextCalls* next_of(const ibv_context* context) {
  const std::shared_lock lock(contexts().mutex);
  const auto found = contexts().behind.find(context);
  // Of a context that the checker has not seen, only the checked operations of another could bring us here.
  return found != contexts().behind.end() ? &found->second : &contexts().behind.begin()->second;
}

void check_context(ibv_context* context) {
  verbs_context* const extended = verbs_get_ctx(context);
  const std::unique_lock lock(contexts().mutex);
  ContextCalls& behind = contexts().behind[context];
  behind.ops = context->ops;
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.post_srq_recv = post_srq_recv;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  if (extended == nullptr) return;
  behind.create_qp_ex = extended->create_qp_ex;
  behind.create_cq_ex = extended->create_cq_ex;
  behind.create_srq_ex = extended->create_srq_ex;
  if (behind.create_qp_ex != nullptr) extended->create_qp_ex = create_qp_ex;
  if (behind.create_cq_ex != nullptr) extended->create_cq_ex = create_cq_ex;
  if (behind.create_srq_ex != nullptr) extended->create_srq_ex = create_srq_ex;
}

void uncheck_context(const ibv_context* context) {
  const std::unique_lock lock(contexts().mutex);
  if (contexts().behind.size() > 1) contexts().behind.erase(context);
}

}  // namespace weir::check

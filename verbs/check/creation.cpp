#include "verbs/check/creation.hpp"

#include "verbs/check/next_calls.hpp"
#include "verbs/check/work.hpp"

namespace weir::check {

void object_created(const void* handle, Kind kind, std::vector<const void*> made_from, void* caller,
                    std::uint32_t number) {
  std::erase(made_from, nullptr);
  objects().created(handle, {.kind = kind,
                             .number = number,
                             .created = place_here(),
                             .made_from = std::move(made_from),
                             .of_library = is_of_rdma_libraries(caller)});
}

void queue_pair_created(ibv_qp* qp, const QueuePairMade& made, void* caller) {
  object_created(qp, Kind::qp, {qp->pd, qp->send_cq, qp->recv_cq, qp->srq}, caller, qp->qp_num);
  auto record = std::make_shared<QueuePairRecord>();
  record->qp = qp;
  record->number = qp->qp_num;
  record->caps = made.caps;
  record->signals_all = made.signals_all;
  record->has_builders = made.has_builders;
  record->created = place_here();
  keep(qp, std::move(record));
  totals().queue_pairs.fetch_add(1, std::memory_order_relaxed);
}

void completion_queue_created(ibv_cq* cq, void* caller) {
  object_created(cq, Kind::cq, {cq->channel, cq->context}, caller);
  auto record = std::make_shared<CompletionQueueRecord>();
  record->cq = cq;
  keep(cq, std::move(record));
}

void shared_receive_queue_created(ibv_srq* srq, void* caller) {
  object_created(srq, Kind::srq, {srq->pd}, caller);
  keep(srq, std::make_shared<SharedReceiveRecord>());
}

void region_created(ibv_mr* mr, std::uint64_t iova, unsigned access, void* caller) {
  object_created(mr, Kind::region, {mr->pd}, caller, mr->lkey);
  note_allocator();
  objects().registered({.lkey = mr->lkey,
                        .rkey = mr->rkey,
                        .addr = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
                        .base = reinterpret_cast<std::uint64_t>(mr->addr),
                        .length = mr->length,
                        .access = access,
                        .pd = mr->pd,
                        .registered = place_here(),
                        .deregistered = {}});
}

}  // namespace weir::check

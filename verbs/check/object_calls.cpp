// The exported calls of libibverbs that create, change and destroy objects, in front of the library's own.
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "verbs/check/check_settings.hpp"
#include "verbs/check/checks.hpp"
#include "verbs/check/creation.hpp"
#include "verbs/check/ending.hpp"
#include "verbs/check/inside.hpp"

// <infiniband/verbs.h> wraps these in macros for applications.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace weir::check {
namespace {

bool off() { return !settings().on; }

// Destroys by `call`, and keeps the record only if that is refused.
template <class Call, class Handle, class Before>
int destroy(Call* call, Handle* handle, const char* name, Before before) {
  const Inside inside;
  if (off()) return call(handle);
  if (destroyed_twice(handle, name)) return EINVAL;
  before();
  const Place here = place_here();
  // Off the record first: as soon as it is gone, another thread may be given its address.
  const auto object = objects().find(handle);
  objects().destroyed(handle, here);
  const int error = call(handle);
  if (error == 0 || !object) return error;
  objects().created(handle, *object);
  if (error == EBUSY) refused_as_in_use(handle, here);
  return error;
}

}  // namespace
}  // namespace weir::check

using namespace weir::check;

#define WEIR_CALLER __builtin_return_address(0)

extern "C" {

ibv_context* ibv_open_device(ibv_device* device) {
  WEIR_NEXT(ibv_open_device);
  const Inside inside;
  ibv_context* const context = call(device);
  if (off() || context == nullptr) return context;
  check_context(context);
  object_created(context, Kind::context, {}, WEIR_CALLER);
  device_opened();
  return context;
}

int ibv_close_device(ibv_context* context) {
  WEIR_NEXT(ibv_close_device);
  const Inside inside;
  if (!off()) {
    if (destroyed_twice(context, "ibv_close_device")) return EINVAL;
    uncheck_context(context);
    objects().destroyed(context, place_here());
  }
  return call(context);
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  WEIR_NEXT(ibv_alloc_pd);
  const Inside inside;
  ibv_pd* const pd = call(context);
  if (!off() && pd != nullptr) object_created(pd, Kind::pd, {context}, WEIR_CALLER);
  return pd;
}

int ibv_dealloc_pd(ibv_pd* pd) {
  WEIR_NEXT(ibv_dealloc_pd);
  return destroy(call, pd, "ibv_dealloc_pd", [] {});
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, size_t length, int access) {
  WEIR_NEXT(ibv_reg_mr);
  const Inside inside;
  ibv_mr* const mr = call(pd, addr, length, access);
  if (!off() && mr != nullptr)
    region_created(mr, reinterpret_cast<std::uint64_t>(addr), static_cast<unsigned>(access), WEIR_CALLER);
  return mr;
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, size_t length, uint64_t iova, int access) {
  WEIR_NEXT(ibv_reg_mr_iova);
  const Inside inside;
  ibv_mr* const mr = call(pd, addr, length, iova, access);
  if (!off() && mr != nullptr) region_created(mr, iova, static_cast<unsigned>(access), WEIR_CALLER);
  return mr;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned int access) {
  WEIR_NEXT(ibv_reg_mr_iova2);
  const Inside inside;
  ibv_mr* const mr = call(pd, addr, length, iova, access);
  if (!off() && mr != nullptr) region_created(mr, iova, access, WEIR_CALLER);
  return mr;
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length, int access) {
  WEIR_NEXT(ibv_rereg_mr);
  const Inside inside;
  const std::uint32_t before = mr->lkey;
  const int error = call(mr, flags, pd, addr, length, access);
  if (off() || error != 0) return error;
  const auto old = objects().region(before);
  const unsigned rights = flags & IBV_REREG_MR_CHANGE_ACCESS ? static_cast<unsigned>(access)
                          : old                              ? old->access
                                                             : 0;
  const bool moved = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  objects().deregistered(before, place_here());
  region_created(mr, moved || !old ? reinterpret_cast<std::uint64_t>(mr->addr) : old->addr, rights,
                 WEIR_CALLER);
  return 0;
}

int ibv_dereg_mr(ibv_mr* mr) {
  WEIR_NEXT(ibv_dereg_mr);
  const Inside inside;
  if (off()) return call(mr);
  if (destroyed_twice(mr, "ibv_dereg_mr")) return EINVAL;
  const std::uint32_t key = mr->lkey;
  about_to_deregister(*mr);
  const int error = destroy(call, mr, "ibv_dereg_mr", [] {});
  if (error == 0) objects().deregistered(key, place_here());
  return error;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  WEIR_NEXT(ibv_create_comp_channel);
  const Inside inside;
  ibv_comp_channel* const channel = call(context);
  if (!off() && channel != nullptr) object_created(channel, Kind::channel, {context}, WEIR_CALLER);
  return channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  WEIR_NEXT(ibv_destroy_comp_channel);
  return destroy(call, channel, "ibv_destroy_comp_channel", [] {});
}

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                      int vector) {
  WEIR_NEXT(ibv_create_cq);
  const Inside inside;
  ibv_cq* const cq = call(context, cqe, cq_context, channel, vector);
  if (!off() && cq != nullptr) completion_queue_created(cq, WEIR_CALLER);
  return cq;
}

int ibv_destroy_cq(ibv_cq* cq) {
  WEIR_NEXT(ibv_destroy_cq);
  const int error = destroy(call, cq, "ibv_destroy_cq", [cq] {
    if (const auto record = record_of(cq); record != nullptr && objects().users_of(cq).empty())
      about_to_destroy(*record);
  });
  if (error == 0) drop(cq);
  return error;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  WEIR_NEXT(ibv_get_cq_event);
  const Inside inside;
  if (!off()) about_to_wait(*channel);
  const int error = call(channel, cq, cq_context);
  if (off() || error != 0) return error;
  if (const auto record = record_of(*cq)) event_taken(*record);
  return 0;
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned int count) {
  WEIR_NEXT(ibv_ack_cq_events);
  const Inside inside;
  if (!off())
    if (const auto record = record_of(cq)) events_acknowledged(*record, count);
  call(cq, count);
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  WEIR_NEXT(ibv_create_qp);
  const Inside inside;
  ibv_qp* const qp = call(pd, init);
  if (!off() && qp != nullptr)
    queue_pair_created(qp, {.caps = init->cap, .signals_all = init->sq_sig_all != 0}, WEIR_CALLER);
  return qp;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  WEIR_NEXT(ibv_modify_qp);
  const Inside inside;
  const auto record = off() ? nullptr : record_of(qp);
  if (record == nullptr) return call(qp, attr, mask);
  const ibv_qp_state before = state_of(qp);
  const int error = call(qp, attr, mask);
  modified(*record, *attr, mask, before, error);
  return error;
}

int ibv_destroy_qp(ibv_qp* qp) {
  WEIR_NEXT(ibv_destroy_qp);
  const int error = destroy(call, qp, "ibv_destroy_qp", [qp] { drop(qp); });
  return error;
}

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  WEIR_NEXT(ibv_create_srq);
  const Inside inside;
  ibv_srq* const srq = call(pd, init);
  if (!off() && srq != nullptr) shared_receive_queue_created(srq, WEIR_CALLER);
  return srq;
}

int ibv_destroy_srq(ibv_srq* srq) {
  WEIR_NEXT(ibv_destroy_srq);
  const int error = destroy(call, srq, "ibv_destroy_srq", [] {});
  if (error == 0) drop(srq);
  return error;
}

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  WEIR_NEXT(ibv_create_ah);
  const Inside inside;
  ibv_ah* const ah = call(pd, attr);
  if (!off() && ah != nullptr) object_created(ah, Kind::ah, {pd}, WEIR_CALLER);
  return ah;
}

int ibv_destroy_ah(ibv_ah* ah) {
  WEIR_NEXT(ibv_destroy_ah);
  return destroy(call, ah, "ibv_destroy_ah", [] {});
}

}  // extern "C"

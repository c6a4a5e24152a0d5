// The verbs objects behind the pointers that applications hold: each begins with the public struct, so that
// the inline functions of <infiniband/verbs.h> and the application find what they expect, and continues with
// ours.
//
// Threading: as the verbs API says, every function may be called from any thread. Use counts are atomics;
// teardown in the wrong order is refused with EBUSY.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "rnic/adapter.hpp"
#include "verbs/ibv/gid_table.hpp"
#include "verbs/progress/nic_process.hpp"

// <infiniband/verbs.h> wraps these in macros for applications; here they are the functions.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace weir::verbs {

struct Device {
  ibv_device device;
  // Applications compiled with providers' direct-verbs headers look for a provider's ops behind the public
  // struct (mlx5dv_is_supported compares a pointer there): zeros say "not yours".
  std::byte provider_tail[128];
};
Device& the_device();

struct Context {
  verbs_context verbs;  // its last member is the public ibv_context
  NicProcess* nic;
  int async_eventfd;  // = ibv_context.async_fd; one count per queued event
  std::mutex async_mutex;
  std::deque<ibv_async_event> async_queue;

  rnic::Adapter& adapter() const { return nic->adapter(); }
};
inline Context& context_of(ibv_context* context) {
  auto* bytes = reinterpret_cast<std::byte*>(context);
  return *reinterpret_cast<Context*>(bytes - offsetof(verbs_context, context));
}

struct Pd {
  ibv_pd pd;
  std::uint32_t number;
  std::atomic<int> users;
};
inline Pd& pd_of(ibv_pd* pd) { return *reinterpret_cast<Pd*>(pd); }

struct Mr {
  ibv_mr mr;
  std::uint32_t access;
};

struct Cq;
struct Channel {
  ibv_comp_channel channel;
  std::uint32_t number;
  std::mutex mutex;
  std::vector<Cq*> cqs;
  std::size_t next;  // where the search for a pending event begins: round robin
};
inline Channel& channel_of(ibv_comp_channel* channel) { return *reinterpret_cast<Channel*>(channel); }

struct Cq {
  ibv_cq cq;
  rnic::CompletionQueue* nic_cq;
  std::uint32_t events_delivered;          // under the channel's mutex
  std::atomic<std::uint32_t> empty_polls;  // in a row or not; one that two pollers count once costs nothing
};
inline Cq& cq_of(ibv_cq* cq) { return *reinterpret_cast<Cq*>(cq); }

struct Srq {
  ibv_srq srq;
  rnic::SharedReceiveQueue* nic_srq;
  std::uint32_t async_delivered;  // under the context's async_mutex
};
inline Srq& srq_of(ibv_srq* srq) { return *reinterpret_cast<Srq*>(srq); }

// An address handle: where a datagram goes and the GRH it will carry.
struct Ah {
  ibv_ah ah;
  bool reachable;  // the destination GID is an address of this host
  std::byte grh[rnic::grh_bytes];
};

// State between ibv_wr_start and ibv_wr_complete, under the queue pair's send lock.
struct Builder {
  rnic::SendWqe* wqe = nullptr;
  int error = 0;
};

struct Qp {
  ibv_qp_ex ex;  // begins with the public ibv_qp
  rnic::QueuePair* nic_qp;
  ibv_qp_cap cap;
  bool signal_all;
  bool extended;
  ibv_qp_attr attr;  // as last set, for ibv_query_qp
  Builder builder;
  std::uint32_t async_delivered;  // under the context's async_mutex
};
inline Qp& qp_of(ibv_qp* qp) { return *reinterpret_cast<Qp*>(qp); }
inline Qp& qp_of(ibv_qp_ex* qp) { return *reinterpret_cast<Qp*>(qp); }

static_assert(sizeof(ibv_sge) == sizeof(rnic::Sge) && offsetof(ibv_sge, lkey) == offsetof(rnic::Sge, lkey));
inline std::span<const rnic::Sge> sges_of(const ibv_sge* list, int count) {
  return {reinterpret_cast<const rnic::Sge*>(list), static_cast<std::size_t>(count < 0 ? 0 : count)};
}

int errno_of(rnic::PostResult result);

// Entries of the context's operation tables, each in the file named.
int query_port(ibv_context*, std::uint8_t port, ibv_port_attr*, std::size_t size);  // ports.cpp
int query_device_ex(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*, std::size_t size);
int poll_cq(ibv_cq*, int count, ibv_wc*);  // completion.cpp
int req_notify_cq(ibv_cq*, int solicited_only);
int post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);  // posting.cpp
int post_recv(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
int post_srq_recv(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);
ibv_mw* alloc_mw(ibv_pd*, ibv_mw_type);  // memory_windows.cpp
int bind_mw(ibv_qp*, ibv_mw*, ibv_mw_bind*);
int dealloc_mw(ibv_mw*);
std::optional<rnic::SendRequest> bind_request(const ibv_mw&, std::uint32_t rkey, const ibv_mw_bind_info&);
ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex*);                           // queue_pair.cpp
ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex*);                        // srq.cpp
void install_builders(ibv_qp_ex&);                                                  // builders.cpp
void deliver_async(rnic::AsyncEvent, rnic::QueuePair*, rnic::SharedReceiveQueue*);  // async_events.cpp
void open_async_queue(Context&);
void close_async_queue(Context&);

// The events that a destroy must wait for (ibv_ack_cq_events(3), ibv_ack_async_event(3)).
template <class Object>
void wait_for_acks(Object& object, std::uint32_t& acknowledged, std::uint32_t delivered) {
  pthread_mutex_lock(&object.mutex);
  while (acknowledged != delivered) pthread_cond_wait(&object.cond, &object.mutex);
  pthread_mutex_unlock(&object.mutex);
}

}  // namespace weir::verbs

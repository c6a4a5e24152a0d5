// The verbs objects behind the pointers that applications hold. Each begins with the public struct,
// because the application and the inline functions of <infiniband/verbs.h> access it directly, and
// continues with our own members.
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
#include "verbs/ibv/event_count.hpp"
#include "verbs/ibv/gid_table.hpp"
#include "verbs/ibv/path.hpp"
#include "verbs/nic/nic_process.hpp"
#include "verbs/weak/weak_polls.hpp"

// <infiniband/verbs.h> wraps these functions in macros for applications; here we define the functions.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace weir::verbs {

struct ParentDomain;

struct Device {
  ibv_device device;
  // Applications compiled with a provider's direct-verbs headers look for the provider's ops behind the
  // public struct (mlx5dv_is_supported compares a pointer there). Zeros say that this is no such device.
  std::byte provider_tail[128];
};
std::span<Device> devices();  // device.cpp; they live until exit
std::size_t index_of(const ibv_device&);

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

// A protection domain or a parent domain. A parent domain has the number of the domain that it extends.
struct Pd {
  ibv_pd pd;
  std::uint32_t number;
  std::atomic<int> users;
  ParentDomain* parent;          // nullptr: not a parent domain (domains.hpp)
  std::atomic<bool> unimported;  // deleted with its last user (import.cpp)
};
inline Pd& pd_of(ibv_pd* pd) { return *reinterpret_cast<Pd*>(pd); }
inline void drop_user(Pd& pd) {
  if (pd.users.fetch_sub(1) == 1 && pd.unimported.load()) delete &pd;
}

struct Mr {
  ibv_mr mr;
  std::uint32_t access;
  // User count of the device memory that it lies in (device_memory.cpp); nullptr: ordinary memory.
  std::atomic<int>* memory_users;
};

struct Xrcd {
  ibv_xrcd xrcd;
  std::uint64_t identity;  // equal for all handles on one domain
  std::atomic<int> users;
};
inline Xrcd& xrcd_of(ibv_xrcd* xrcd) { return *reinterpret_cast<Xrcd*>(xrcd); }

struct Cq;
struct Channel {
  ibv_comp_channel channel;
  std::uint32_t number;
  int events;  // an eventfd that counts them one by one; the channel's descriptor is readable, too
  std::mutex mutex;
  std::vector<Cq*> cqs;
  std::size_t next;  // where the next search for a pending event begins: round robin
};
inline Channel& channel_of(ibv_comp_channel* channel) { return *reinterpret_cast<Channel*>(channel); }

// Additional state of a CQ of the extended interface (extended_cq.cpp).
struct ExtendedPoll {
  std::mutex mutex;  // held from start_poll to end_poll
  bool single_threaded;
  bool stamps;
  NicProcess* faulty;  // whose faults may be about completions; nullptr: it has none
  ibv_wc current;
  std::uint64_t clock_ns, wallclock_ns;
};

struct Cq {
  union {
    ibv_cq_ex ex;  // begins with the fields of the public ibv_cq
    ibv_cq cq;
  };
  rnic::CompletionQueue* nic_cq;
  std::uint32_t events_delivered;          // under the channel's mutex
  std::atomic<std::uint32_t> empty_polls;  // in a row; pollers may race: a lost count is harmless
  Pd* domain;                              // the parent domain it was created in, or nullptr
  std::unique_ptr<ExtendedPoll> extended;  // of a CQ made by ibv_create_cq_ex
  WeakPolls weak;                          // with --weak
};
inline Cq& cq_of(ibv_cq* cq) { return *reinterpret_cast<Cq*>(cq); }
inline Cq& cq_of(ibv_cq_ex* cq) { return *reinterpret_cast<Cq*>(cq); }

struct Srq {
  ibv_srq srq;
  rnic::SharedReceiveQueue* nic_srq;
  Xrcd* xrcd;                     // XRC
  std::uint32_t async_delivered;  // under the context's async_mutex
};
inline Srq& srq_of(ibv_srq* srq) { return *reinterpret_cast<Srq*>(srq); }

inline constexpr int max_address_handles = 1 << 16;

// An address handle: where a datagram goes and the GRH it will carry.
struct Ah {
  ibv_ah ah;
  bool reachable;           // the destination is on this host, or packets reach it
  bool to_group;            // the destination is a multicast group
  std::uint32_t path_kbps;  // rnic::SendWqe
  rnic::DatagramPath path;
};
// The static rate of a path (IBA 9.11); 0: no limit below the port's speed (address_handle.cpp).
std::uint32_t path_kbps_of(const ibv_ah_attr&);
bool is_multicast(const ibv_gid&);  // multicast.cpp
rnic::DatagramAddress datagram_address(const Ah*, std::uint32_t qpn,
                                       std::uint32_t qkey);  // address_handle.cpp

// State between ibv_wr_start and ibv_wr_complete, under the queue pair's send lock.
struct Builder {
  rnic::SendWqe* wqe = nullptr;
  int error = 0;
};

// A receive queue of its own; indirection tables spread frames over several (work_queue.cpp).
struct Wq {
  ibv_wq wq;
  rnic::QueuePair* nic_qp;
  std::atomic<int> tables;
  std::uint32_t async_delivered;  // under the context's async_mutex
};
inline Wq& wq_of(ibv_wq* wq) { return *reinterpret_cast<Wq*>(wq); }

struct IndirectionTable {
  ibv_rwq_ind_table table;
  std::vector<Wq*> entries;  // their number is a power of two
  std::atomic<int> qps;
};
inline IndirectionTable& table_of(ibv_rwq_ind_table* table) {
  return *reinterpret_cast<IndirectionTable*>(table);
}
inline constexpr int max_indirection_tables = 1024;

struct Qp {
  ibv_qp_ex ex;  // begins with the public ibv_qp
  rnic::QueuePair* nic_qp;
  ibv_qp_cap cap;
  bool signal_all;
  bool extended;
  ibv_qp_attr attr;           // as last set, for ibv_query_qp
  Way way;                    // to its peer, from RTR on
  std::uint32_t burst_bytes;  // of attr.rate_limit
  Builder builder;
  Xrcd* xrcd;                     // XRC_RECV
  std::atomic<int> flows;         // RAW_PACKET: flows that lead here
  IndirectionTable* indirection;  // RAW_PACKET with a receive hash; else nullptr
  std::uint32_t async_delivered;  // under the context's async_mutex
};
inline Qp& qp_of(ibv_qp* qp) { return *reinterpret_cast<Qp*>(qp); }
inline Qp& qp_of(ibv_qp_ex* qp) { return *reinterpret_cast<Qp*>(qp); }

static_assert(sizeof(ibv_sge) == sizeof(rnic::Sge) && offsetof(ibv_sge, lkey) == offsetof(rnic::Sge, lkey));
inline std::span<const rnic::Sge> sges_of(const ibv_sge* list, int count) {
  return {reinterpret_cast<const rnic::Sge*>(list), static_cast<std::size_t>(count < 0 ? 0 : count)};
}

int errno_of(rnic::PostResult result);

// A new context of the device. It takes ownership of cmd_fd; on failure returns nullptr with errno and leaves
// cmd_fd to the caller (device.cpp).
ibv_context* open_context(ibv_device*, int cmd_fd);

// The range of a queue pair's rate limit; the maximum is the speed that the port claims.
inline constexpr std::uint32_t min_rate_limit_kbps = 1'000, max_rate_limit_kbps = 100'000'000;

// Functions of the context's operation tables, grouped by the file that defines them.
int query_port(ibv_context*, std::uint8_t port, ibv_port_attr*, std::size_t size);  // ports.cpp
int query_device_ex(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*, std::size_t size);
int query_rt_values(ibv_context*, ibv_values_ex*);
int poll_cq(ibv_cq*, int count, ibv_wc*);  // completion.cpp
int req_notify_cq(ibv_cq*, int solicited_only);
void make_completions_weak(ibv_context_ops&);  // the NIC is weak
void to_verbs(const rnic::WorkCompletion&, ibv_wc&);
// True: others had the processor meanwhile, so look again. A program that is told "empty" may look next for
// the end of the connection, and must not find it before what was sent ahead of it.
bool gave_way_after_empty_poll(Cq&);
void after_full_poll(Cq&);
Cq* create_cq(ibv_context*, int cqe, void* cq_context, ibv_comp_channel*, int comp_vector);
ibv_cq_ex* create_cq_ex(ibv_context*, ibv_cq_init_attr_ex*);  // extended_cq.cpp
int modify_cq(ibv_cq*, ibv_modify_cq_attr*);
int post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);  // posting.cpp
int post_recv(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
int post_wq_recv(ibv_wq*, ibv_recv_wr*, ibv_recv_wr** bad);
int post_srq_recv(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);
ibv_mw* alloc_mw(ibv_pd*, ibv_mw_type);  // memory_windows.cpp
int bind_mw(ibv_qp*, ibv_mw*, ibv_mw_bind*);
int dealloc_mw(ibv_mw*);
std::optional<rnic::SendRequest> bind_request(const ibv_mw&, std::uint32_t rkey, const ibv_mw_bind_info&);
ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex*);  // queue_pair.cpp
int modify_qp_rate_limit(ibv_qp*, ibv_qp_rate_limit_attr*);
ibv_flow* create_flow(ibv_qp*, ibv_flow_attr*);  // flow.cpp
int destroy_flow(ibv_flow*);
ibv_wq* create_wq(ibv_context*, ibv_wq_init_attr*);  // work_queue.cpp
int modify_wq(ibv_wq*, ibv_wq_attr*);
int destroy_wq(ibv_wq*);
ibv_rwq_ind_table* create_rwq_ind_table(ibv_context*, ibv_rwq_ind_table_init_attr*);  // indirection_table.cpp
int destroy_rwq_ind_table(ibv_rwq_ind_table*);
ibv_qp* create_rss_qp(ibv_context*, ibv_qp_init_attr_ex*);  // receive_side_scaling.cpp
ibv_rss_caps rss_caps();
ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex*);  // srq.cpp
ibv_xrcd* open_xrcd(ibv_context*, ibv_xrcd_init_attr*);       // xrc.cpp
int close_xrcd(ibv_xrcd*);
int get_srq_num(ibv_srq*, std::uint32_t* number);
ibv_qp* open_qp(ibv_context*, ibv_qp_open_attr*);
void share_queue_pair(Qp&);  // an XRC_RECV queue pair that others may open
void refresh_shared(Qp&);    // reads its current attributes
bool last_handle_of(Qp&);    // removes the handle; true: it was the last, or never shared
int advise_mr(ibv_pd*, ibv_advise_mr_advice, std::uint32_t flags, ibv_sge*,
              std::uint32_t count);                 // advice.cpp
ibv_td* alloc_td(ibv_context*, ibv_td_init_attr*);  // domains.cpp
int dealloc_td(ibv_td*);
ibv_mr* alloc_null_mr(ibv_pd*);
ibv_pd* alloc_parent_domain(ibv_context*, ibv_parent_domain_init_attr*);
ibv_dm* alloc_dm(ibv_context*, ibv_alloc_dm_attr*);  // device_memory.cpp
int free_dm(ibv_dm*);
ibv_mr* reg_dm_mr(ibv_pd*, ibv_dm*, std::uint64_t offset, std::size_t length, unsigned access);
ibv_mr* register_region(ibv_pd*, void* addr, std::size_t length, std::uint64_t iova,
                        unsigned access);                                           // protection.cpp
void install_builders(ibv_qp_ex&);                                                  // builders.cpp
void deliver_async(rnic::AsyncEvent, rnic::QueuePair*, rnic::SharedReceiveQueue*);  // async_events.cpp
void deliver_port_event(ibv_event_type);                                            // to every opened device
void open_async_queue(Context&);
void close_async_queue(Context&);

// For an object that is being destroyed: drops its events that nobody has fetched (`about` selects them) and
// returns how many were fetched, for wait_for_acks().
template <class About>
std::uint32_t forget_async_events(Context& context, const std::uint32_t& delivered, About about) {
  const std::lock_guard lock(context.async_mutex);
  discard_events(context.async_eventfd, std::erase_if(context.async_queue, about));
  return delivered;
}

// The events that a destroy must wait for (ibv_ack_cq_events(3), ibv_ack_async_event(3)).
template <class Object>
void wait_for_acks(Object& object, std::uint32_t& acknowledged, std::uint32_t delivered) {
  pthread_mutex_lock(&object.mutex);
  while (acknowledged != delivered) pthread_cond_wait(&object.cond, &object.mutex);
  pthread_mutex_unlock(&object.mutex);
}

}  // namespace weir::verbs

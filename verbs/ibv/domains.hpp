// Parent domains: what ibv_alloc_parent_domain(3) adds to a protection domain, and the memory of objects made
// in one.
#pragma once

#include <mutex>
#include <new>
#include <set>

#include "verbs/ibv/objects.hpp"

namespace weir::verbs {

// A thread domain: a promise of the application that one thread at a time uses what is made in it. The NIC's
// locks cost nothing when they are free, so the promise changes nothing but a CQ's lock (extended_cq.cpp).
struct ThreadDomain {
  ibv_td td;
  std::atomic<int> users;
};
inline ThreadDomain& td_of(ibv_td* td) { return *reinterpret_cast<ThreadDomain*>(td); }

// The upper half names the driver (enum rdma_driver_id; ours is none of them), the lower is ours to number.
enum class Resource : std::uint64_t { qp = 1, srq = 2, wq = 3 };

struct ParentDomain {
  ibv_pd* domain;  // the protection domain that it extends
  ThreadDomain* thread_domain;
  decltype(ibv_parent_domain_init_attr::alloc) alloc;  // nullptr: no allocators of its own
  decltype(ibv_parent_domain_init_attr::free) free;
  void* context;
  std::mutex mutex;
  std::set<void*> allocated;  // what came from `alloc`; the rest is ours

  // nullptr: the application's allocator refused.
  void* allocate(ibv_pd*, std::size_t size, std::size_t alignment, Resource);
  void release(ibv_pd*, void* memory, std::size_t alignment, Resource);
};

template <class Object>
constexpr std::size_t object_alignment = std::max(alignof(Object), rnic::cache_line);

// The memory of a queue pair or SRQ in the process comes from its parent domain's allocator, if there is one.
// (The rings that a neighbour writes lie in the process's shared segment and can lie nowhere else.)
template <class Object>
Object* make_object(ibv_pd* pd, Resource kind) {
  // XRC_RECV queue pairs have no domain.
  ParentDomain* const parent = pd != nullptr ? pd_of(pd).parent : nullptr;
  if (parent == nullptr) return new Object{};
  void* const memory = parent->allocate(pd, sizeof(Object), object_alignment<Object>, kind);
  return memory != nullptr ? new (memory) Object{} : nullptr;
}

template <class Object>
void delete_object(ibv_pd* pd, Object* object, Resource kind) {
  // XRC_RECV queue pairs have no domain.
  ParentDomain* const parent = pd != nullptr ? pd_of(pd).parent : nullptr;
  if (parent == nullptr) {
    delete object;
    return;
  }
  object->~Object();
  parent->release(pd, object, object_alignment<Object>, kind);
}

// Whether a protection domain of this number exists in this process (import.cpp).
bool domain_exists(std::uint32_t number);

}  // namespace weir::verbs

// Parent domains: what ibv_alloc_parent_domain(3) adds to a protection domain, and how objects
// made in one get their memory.
#pragma once

#include <mutex>
#include <new>
#include <set>

#include "verbs/ibv/objects.hpp"

namespace weir::verbs {

// A thread domain: the application promises that one thread at a time uses the objects made in it. The NIC's
// uncontended locks cost nothing, so the promise only affects the lock of a CQ (extended_cq.cpp).
struct ThreadDomain {
  ibv_td td;
  std::atomic<int> users;
};
inline ThreadDomain& td_of(ibv_td* td) { return *reinterpret_cast<ThreadDomain*>(td); }

// The upper half names the driver (enum rdma_driver_id has none for us); we number the lower half.
enum class Resource : std::uint64_t { qp = 1, srq = 2, wq = 3 };

struct ParentDomain {
  ibv_pd* domain;  // the protection domain that it extends
  ThreadDomain* thread_domain;
  decltype(ibv_parent_domain_init_attr::alloc) alloc;  // nullptr: no allocators of its own
  decltype(ibv_parent_domain_init_attr::free) free;
  void* context;
  std::mutex mutex;
  std::set<void*> allocated;  // blocks that came from `alloc`; we allocated the others

  // nullptr: the application's allocator refused.
  void* allocate(ibv_pd*, std::size_t size, std::size_t alignment, Resource);
  void release(ibv_pd*, void* memory, std::size_t alignment, Resource);
};

template <class Object>
constexpr std::size_t object_alignment = std::max(alignof(Object), rnic::cache_line);

// A queue pair or SRQ takes its process memory from the allocator of its parent domain, if that has one. (The
// rings that a neighbour writes must lie in the process's shared segment.)
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

// Protection domains, thread domains, parent domains.
#include "verbs/ibv/domains.hpp"

#include <cerrno>

#include "verbs/faulty/calls.hpp"

namespace weir::verbs {
namespace {

struct Domains {
  std::mutex mutex;
  std::uint32_t last = 0;
  std::set<std::uint32_t> existing;
};
Domains& domains() {
  static auto* all = new Domains;
  return *all;
}

}  // namespace

bool domain_exists(std::uint32_t number) {
  const std::lock_guard lock(domains().mutex);
  return domains().existing.contains(number);
}

void* ParentDomain::allocate(ibv_pd* pd, std::size_t size, std::size_t alignment, Resource kind) {
  void* memory = IBV_ALLOCATOR_USE_DEFAULT;
  if (alloc != nullptr) memory = alloc(pd, context, size, alignment, static_cast<std::uint64_t>(kind));
  if (memory == IBV_ALLOCATOR_USE_DEFAULT) return ::operator new(size, std::align_val_t{alignment});
  if (memory == nullptr) return nullptr;
  const std::lock_guard lock(mutex);
  return *allocated.insert(memory).first;
}

void ParentDomain::release(ibv_pd* pd, void* memory, std::size_t alignment, Resource kind) {
  bool theirs = false;
  {
    const std::lock_guard lock(mutex);
    theirs = allocated.erase(memory) != 0;
  }
  if (theirs)
    free(pd, context, memory, static_cast<std::uint64_t>(kind));
  else
    ::operator delete(memory, std::align_val_t{alignment});
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  if (attr->comp_mask != 0) {
    errno = EINVAL;
    return nullptr;
  }
  auto* td = new ThreadDomain{};
  td->td.context = context;
  return &td->td;
}

int dealloc_td(ibv_td* td) {
  if (td_of(td).users.load() != 0) return EBUSY;
  delete &td_of(td);
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  constexpr std::uint32_t known =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  const bool allocators = attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  // With only one of the two functions we would leak memory, or free what we did not allocate.
  const bool half = allocators && (attr->alloc == nullptr || attr->free == nullptr);
  if (attr->pd == nullptr || (attr->comp_mask & ~known) || half || pd_of(attr->pd).parent != nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  auto* parent = new ParentDomain{};
  parent->domain = attr->pd;
  parent->thread_domain = attr->td != nullptr ? &td_of(attr->td) : nullptr;
  if (allocators) {
    parent->alloc = attr->alloc;
    parent->free = attr->free;
  }
  if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) parent->context = attr->pd_context;
  auto* pd = new Pd{};
  pd->number = pd_of(attr->pd).number;
  pd->pd = {context, pd->number};
  pd->parent = parent;
  pd_of(attr->pd).users.fetch_add(1);
  if (parent->thread_domain != nullptr) parent->thread_domain->users.fetch_add(1);
  return &pd->pd;
}

}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (is_refused(*context_of(context).nic, weir::faults::Call::alloc_pd)) return nullptr;
  auto* pd = new Pd{};
  {
    const std::lock_guard lock(domains().mutex);
    pd->number = ++domains().last;
    domains().existing.insert(pd->number);
  }
  pd->pd = {context, pd->number};
  return &pd->pd;
}

int ibv_dealloc_pd(ibv_pd* pd) {
  Pd& p = pd_of(pd);
  if (p.users.load() != 0) return EBUSY;
  if (p.parent != nullptr) {
    drop_user(pd_of(p.parent->domain));
    if (p.parent->thread_domain != nullptr) p.parent->thread_domain->users.fetch_sub(1);
    delete p.parent;
  } else {
    const std::lock_guard lock(domains().mutex);
    domains().existing.erase(p.number);
  }
  delete &p;
  return 0;
}

}  // extern "C"

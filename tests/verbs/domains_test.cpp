// Thread domains, parent domains with allocators, and objects imported into another context.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "work_queues.hpp"

namespace weir::verbs_test {
namespace {

// What the callbacks were asked for.
struct Allocations {
  std::map<void*, std::size_t> live;
  int refused = 0;
};

void* allocate(ibv_pd*, void* context, std::size_t size, std::size_t alignment, std::uint64_t) {
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  std::memset(memory, 0, size);
  static_cast<Allocations*>(context)->live[memory] = size;
  return memory;
}
void* refuse(ibv_pd*, void* context, std::size_t, std::size_t, std::uint64_t) {
  ++static_cast<Allocations*>(context)->refused;
  return nullptr;
}
void* use_default(ibv_pd*, void*, std::size_t, std::size_t, std::uint64_t) {
  return IBV_ALLOCATOR_USE_DEFAULT;
}
void release(ibv_pd*, void* context, void* memory, std::uint64_t) {
  EXPECT_EQ(static_cast<Allocations*>(context)->live.erase(memory), 1u);
  std::free(memory);
}

class Domains : public VerbsTest {
 protected:
  using Allocator = decltype(ibv_parent_domain_init_attr::alloc);
  ibv_pd* parent(Allocator allocator = nullptr, ibv_td* td = nullptr) {
    ibv_parent_domain_init_attr attr{};
    attr.pd = pd.get();
    attr.td = td;
    if (allocator != nullptr) {
      attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
      attr.alloc = allocator;
      attr.free = release;
      attr.pd_context = &allocations;
    }
    return ibv_alloc_parent_domain(context.get(), &attr);
  }
  Allocations allocations;
};

TEST_F(Domains, a_parent_domain_is_a_protection_domain_with_the_rights_of_its_own) {
  Pd outer(parent());
  ASSERT_TRUE(outer);
  Cq cq = make_cq();
  ibv_qp_init_attr init = init_attr(cq.get());
  Qp a(ibv_create_qp(outer.get(), &init)), b = make_qp(cq.get());
  connect(a.get(), b.get());
  Buffer memory(pd.get(), 64);  // in the inner domain, used by a queue pair of the outer
  ASSERT_EQ(post_recv(b.get(), 1, memory.sge(0, 32)), 0);
  ibv_sge sge = memory.sge(32, 32);
  ASSERT_EQ(post(a.get(), send_wr(2, sge, IBV_WR_SEND, 0)), 0);
  EXPECT_TRUE(completed(wait_for(cq.get()), 1));
}

TEST_F(Domains, its_allocator_gives_the_memory_of_queues_and_gets_it_back) {
  Pd outer(parent(allocate));
  Cq cq = make_cq();
  ibv_qp_init_attr init = init_attr(cq.get());
  Qp qp(ibv_create_qp(outer.get(), &init));
  ASSERT_TRUE(qp);
  EXPECT_TRUE(allocations.live.contains(qp.get()));
  ibv_srq_init_attr srq_init{nullptr, {16, 1, 0}};
  Srq srq(ibv_create_srq(outer.get(), &srq_init));
  ASSERT_TRUE(srq);
  EXPECT_TRUE(allocations.live.contains(srq.get()));
  Wq wq = ready_wq(outer.get(), cq.get());
  EXPECT_TRUE(allocations.live.contains(wq.get()));
  qp.reset();
  srq.reset();
  wq.reset();
  EXPECT_TRUE(allocations.live.empty());
}

TEST_F(Domains, an_allocator_may_refuse) {
  Pd outer(parent(refuse));
  Cq cq = make_cq();
  ibv_qp_init_attr init = init_attr(cq.get());
  errno = 0;
  EXPECT_EQ(ibv_create_qp(outer.get(), &init), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(allocations.refused, 1);
}

TEST_F(Domains, an_allocator_may_leave_it_to_the_default) {
  Pd outer(parent(use_default));
  Cq cq = make_cq();
  ibv_qp_init_attr init = init_attr(cq.get());
  EXPECT_TRUE(Qp(ibv_create_qp(outer.get(), &init)));
  EXPECT_TRUE(allocations.live.empty());
}

TEST_F(Domains, teardown_goes_from_the_inside_out) {
  ibv_td_init_attr td_attr{};
  ibv_td* td = ibv_alloc_td(context.get(), &td_attr);
  ASSERT_NE(td, nullptr);
  Pd outer(parent(nullptr, td));
  EXPECT_EQ(ibv_dealloc_td(td), EBUSY) << "a parent domain uses it";
  EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY) << "a parent domain extends it";
  {
    Buffer region(outer.get(), 16);
    EXPECT_EQ(ibv_dealloc_pd(outer.get()), EBUSY);
  }
  outer.reset();
  EXPECT_EQ(ibv_dealloc_td(td), 0);
}

TEST_F(Domains, a_parent_domain_of_nonsense_is_refused) {
  ibv_parent_domain_init_attr attr{};
  EXPECT_EQ(ibv_alloc_parent_domain(context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL) << "no protection domain";
  attr.pd = pd.get();
  attr.comp_mask = 1u << 20;
  errno = 0;
  EXPECT_EQ(ibv_alloc_parent_domain(context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL) << "a field nobody knows";
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  attr.alloc = allocate;
  errno = 0;
  EXPECT_EQ(ibv_alloc_parent_domain(context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL) << "an allocator without its release";
  Pd outer(parent());
  attr = {};
  attr.pd = outer.get();
  errno = 0;
  EXPECT_EQ(ibv_alloc_parent_domain(context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL) << "a parent domain of a parent domain";
}

// ---- import

TEST_F(Domains, another_context_of_the_process_imports_domain_and_region) {
  Buffer memory(pd.get(), 64);
  const Context other(ibv_import_device(::fcntl(context->cmd_fd, F_DUPFD_CLOEXEC, 0)));
  ASSERT_TRUE(other);
  ibv_pd* imported = ibv_import_pd(other.get(), pd->handle);
  ASSERT_NE(imported, nullptr);
  ibv_mr* region = ibv_import_mr(imported, memory.mr()->handle);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->lkey, memory.lkey());
  EXPECT_EQ(region->rkey, memory.rkey());
  EXPECT_EQ(region->length, 64u);
  EXPECT_EQ(region->addr, nullptr) << "ibv_import_mr(3)";
  Cq cq = make_cq();
  {
    ibv_qp_init_attr init = init_attr(cq.get());
    Qp a(ibv_create_qp(imported, &init)), b = make_qp(cq.get());
    connect(a.get(), b.get());
    ibv_sge sge = memory.sge(0, 32);
    ibv_send_wr wr = send_wr(3, sge, IBV_WR_RDMA_WRITE);
    wr.wr.rdma.remote_addr = memory.addr() + 32;
    wr.wr.rdma.rkey = region->rkey;
    ASSERT_EQ(post(a.get(), wr), 0);
    EXPECT_TRUE(completed(wait_for(cq.get()), 3));
    ibv_unimport_mr(region);
    ibv_unimport_pd(imported);  // the queue pair made in it is destroyed after it
  }
  EXPECT_EQ(ibv_import_pd(other.get(), 0xffffff), nullptr);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(Domains, a_descriptor_that_is_no_device_is_not_imported) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  errno = 0;
  EXPECT_EQ(ibv_import_device(ends[0]), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace weir::verbs_test

// Memory regions: what may be registered with which rights, and what rereg changes.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>

#include "lone_pages.hpp"
#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

class Regions : public VerbsTest {};

TEST_F(Regions, a_region_says_what_it_is) {
  std::vector<char> memory(100);
  Mr mr(ibv_reg_mr(pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  ASSERT_TRUE(mr);
  EXPECT_EQ(mr->addr, memory.data());
  EXPECT_EQ(mr->length, memory.size());
  EXPECT_EQ(mr->pd, pd.get());
  EXPECT_EQ(mr->context, context.get());
  Mr second(ibv_reg_mr(pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  EXPECT_NE(mr->lkey, second->lkey);
}

TEST_F(Regions, registering_unmapped_memory_fails_with_efault) {
  LonePages pages;
  pages.unmap_page(1);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd.get(), pages.data, 4 * 4096, IBV_ACCESS_LOCAL_WRITE), nullptr) << "a hole";
  EXPECT_EQ(errno, EFAULT);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd.get(), pages.data + 4096, 10, IBV_ACCESS_LOCAL_WRITE), nullptr) << "nothing there";
  EXPECT_EQ(errno, EFAULT);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd.get(), pages.data + 4090, 7, IBV_ACCESS_LOCAL_WRITE), nullptr)
      << "one byte too far";
  EXPECT_EQ(errno, EFAULT);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd.get(), pages.data, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE), nullptr) << "wraps";
  EXPECT_EQ(errno, EFAULT);
  EXPECT_TRUE(Mr(ibv_reg_mr(pd.get(), pages.data + 4090, 6, IBV_ACCESS_LOCAL_WRITE)));
}

// The NIC would write where the program may not.
TEST_F(Regions, registering_memory_for_more_than_it_allows_fails_with_efault) {
  LonePages read_only(PROT_READ), none(PROT_NONE);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd.get(), read_only.data, 4096, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_TRUE(Mr(ibv_reg_mr(pd.get(), read_only.data, 4096, IBV_ACCESS_REMOTE_READ)));
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd.get(), none.data, 4096, 0), nullptr);
  EXPECT_EQ(errno, EFAULT);
}

TEST_F(Regions, rights_are_checked) {
  struct Case {
    int access;
    bool allowed;
  };
  const Case cases[] = {{0, true},
                        {IBV_ACCESS_LOCAL_WRITE, true},
                        {IBV_ACCESS_REMOTE_READ, true},
                        {IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, true},
                        {IBV_ACCESS_REMOTE_WRITE, false},
                        {IBV_ACCESS_REMOTE_ATOMIC, false},
                        {IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, true},
                        {IBV_ACCESS_MW_BIND, true},
                        {IBV_ACCESS_ON_DEMAND, true},
                        {IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB, true},
                        {IBV_ACCESS_LOCAL_WRITE | (1 << 18), false}};
  std::vector<char> memory(8);
  for (const Case& c : cases) {
    errno = 0;
    const Mr mr(register_memory(pd.get(), memory.data(), memory.size(), c.access));
    EXPECT_EQ(mr != nullptr, c.allowed) << c.access;
    if (!c.allowed) {
      EXPECT_NE(errno, 0);
    }
  }
}

TEST_F(Regions, a_region_may_be_empty) {
  char byte;
  EXPECT_TRUE(Mr(ibv_reg_mr(pd.get(), &byte, 0, IBV_ACCESS_LOCAL_WRITE)));
}

TEST_F(Regions, rereg_changes_what_it_is_told_and_refuses_the_rest) {
  Pd other(ibv_alloc_pd(context.get()));
  std::vector<char> memory(64), elsewhere(128);
  Mr mr(register_memory(pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  ASSERT_EQ(ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_PD, other.get(), nullptr, 0, 0), 0);
  EXPECT_EQ(mr->pd, other.get());
  EXPECT_EQ(ibv_dealloc_pd(other.get()), EBUSY);
  ASSERT_EQ(ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, elsewhere.data(), 128, 0), 0);
  EXPECT_EQ(mr->addr, elsewhere.data());
  EXPECT_EQ(mr->length, 128u);
  EXPECT_NE(ibv_rereg_mr(mr.get(), 0, nullptr, nullptr, 0, 0), 0);
  errno = 0;
  EXPECT_NE(ibv_rereg_mr(mr.get(), 1 << 10, nullptr, nullptr, 0, 0), 0);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_NE(ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE),
            0);
  EXPECT_NE(ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0), 0);
  ASSERT_EQ(ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_PD, pd.get(), nullptr, 0, 0), 0);
}

// What libibverbs refuses before it asks the device: the region is as it was.
TEST_F(Regions, rereg_checks_its_input) {
  std::vector<char> memory(64), elsewhere(64);
  Mr mr(register_memory(pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  const auto refused = [](ibv_mr* region, int flags, ibv_pd* domain, void* addr, std::size_t length,
                          int access) {
    errno = 0;
    return ibv_rereg_mr(region, flags, domain, addr, length, access) == IBV_REREG_MR_ERR_INPUT &&
           errno == EINVAL;
  };
  constexpr int to = IBV_REREG_MR_CHANGE_TRANSLATION, into = IBV_REREG_MR_CHANGE_PD;
  EXPECT_TRUE(refused(mr.get(), to, nullptr, elsewhere.data(), 0, 0));
  EXPECT_TRUE(refused(mr.get(), to, nullptr, nullptr, 64, 0));
  EXPECT_TRUE(refused(mr.get(), to, nullptr, elsewhere.data(), 64, IBV_ACCESS_LOCAL_WRITE))
      << "rights that it is not told to change";
  EXPECT_EQ(mr->addr, memory.data());

  ibv_alloc_dm_attr wanted{};
  wanted.length = 64;
  ibv_dm* const dm = ibv_alloc_dm(context.get(), &wanted);
  ASSERT_TRUE(dm);
  Mr of_device(ibv_reg_dm_mr(pd.get(), dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE));
  ibv_mr* const imported = ibv_import_mr(pd.get(), mr->handle);
  for (ibv_mr* region : {of_device.get(), imported}) {
    ASSERT_TRUE(region);
    EXPECT_TRUE(refused(region, to, nullptr, elsewhere.data(), 64, 0));
    EXPECT_TRUE(refused(region, into, pd.get(), nullptr, 0, 0));
  }
  ibv_unimport_mr(imported);
  of_device.reset();
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

// As programs built beside rdma-core 59 and later call it; their header is newer than ours.
TEST_F(Regions, of_newer_programs_are_registered_by_attributes) {
  struct Attributes {
    std::size_t length;
    int access;
    std::uint64_t comp_mask, iova;
    void* addr;
    int fd;
    std::uint64_t fd_offset;
    void* dma_handle;
  };
  using Register = ibv_mr* (*)(ibv_pd*, void*);
  const auto reg = reinterpret_cast<Register>(::dlvsym(RTLD_DEFAULT, "ibv_reg_mr_ex", "IBVERBS_1.15"));
  ASSERT_NE(reg, nullptr);
  std::vector<std::uint8_t> memory(4096);
  constexpr std::uint64_t has_iova = 1, has_addr = 2, has_fd = 4, has_dma_handle = 16;
  Attributes asked{memory.size(), all_access, has_addr, 0x1000, memory.data(), 0, 0, nullptr};
  for (const std::uint64_t mask : {has_addr, has_addr | has_iova}) {
    asked.comp_mask = mask;
    const Mr mr(reg(pd.get(), &asked));
    ASSERT_NE(mr, nullptr) << mask;
    EXPECT_EQ(mr->length, memory.size());
    EXPECT_EQ(mr->addr, memory.data());
  }
  for (const std::uint64_t mask : {has_fd, has_iova, has_addr | has_dma_handle}) {
    asked.comp_mask = mask;
    EXPECT_EQ(reg(pd.get(), &asked), nullptr) << mask;
    EXPECT_EQ(errno, EOPNOTSUPP) << mask;
  }
}

TEST_F(Regions, and_gid_types_are_found_under_the_nodes_of_other_releases) {
  using Query = int (*)(ibv_context*, std::uint8_t, unsigned, unsigned*);
  for (const char* node : {"IBVERBS_PRIVATE_25", "IBVERBS_PRIVATE_33", "IBVERBS_PRIVATE_34",
                           "IBVERBS_PRIVATE_57", "IBVERBS_PRIVATE_59"}) {
    const auto query = reinterpret_cast<Query>(::dlvsym(RTLD_DEFAULT, "ibv_query_gid_type", node));
    ASSERT_NE(query, nullptr) << node;
    unsigned type = 0;
    EXPECT_EQ(query(context.get(), 1, 0, &type), 0) << node;
    EXPECT_EQ(type, 1u) << node << ": RoCE v2";
  }
}

// Debian 13's libmlx5, which its perftest links, does not load without the first of these.
TEST_F(Regions, and_calls_of_providers_are_found_under_the_nodes_of_other_releases) {
  for (const char* node : {"IBVERBS_PRIVATE_34", "IBVERBS_PRIVATE_57", "IBVERBS_PRIVATE_59",
                           "IBVERBS_PRIVATE_64", "IBVERBS_PRIVATE_65"})
    EXPECT_NE(::dlvsym(RTLD_DEFAULT, "ibv_cmd_create_cq_ex2", node), nullptr) << node;
}

}  // namespace
}  // namespace weir::verbs_test

// Special memory: device memory, regions in it, and on-demand regions.
#include <sys/mman.h>

#include <algorithm>

#include "lone_pages.hpp"
#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

constexpr int dm_access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

class DeviceMemory : public ConnectedTest {
 protected:
  ibv_dm* allocate(std::size_t length) {
    ibv_alloc_dm_attr attr{length, 0, 0};
    errno = 0;
    return ibv_alloc_dm(context.get(), &attr);
  }
  std::size_t largest() {
    ibv_device_attr_ex attr{};
    EXPECT_EQ(ibv_query_device_ex(context.get(), nullptr, &attr), 0);
    return attr.max_dm_size;
  }
};

TEST_F(DeviceMemory, what_is_copied_in_is_copied_out) {
  ibv_dm* dm = allocate(4096);
  ASSERT_NE(dm, nullptr);
  const std::uint32_t in[2] = {0x01020304, 0x05060708};
  std::uint32_t out[2] = {};
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 4088, in, 8), 0);
  EXPECT_EQ(ibv_memcpy_from_dm(out, dm, 4088, 8), 0);
  EXPECT_EQ(out[0], in[0]);
  EXPECT_EQ(out[1], in[1]);
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 4092, in, 8), EINVAL) << "beyond its end";
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 2, in, 4), EINVAL) << "not a multiple of 4";
  EXPECT_EQ(ibv_memcpy_from_dm(out, dm, 0, 3), EINVAL);
  EXPECT_EQ(ibv_memcpy_from_dm(out, dm, UINT64_MAX - 3, 8), EINVAL) << "wraps";
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(DeviceMemory, the_limit_is_true) {
  ibv_dm* all = allocate(largest());
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(allocate(1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(ibv_free_dm(all), 0);
  EXPECT_EQ(allocate(largest() + 1), nullptr);
  EXPECT_EQ(allocate(0), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(DeviceMemory, a_peer_writes_into_a_region_of_it_from_zero) {
  ibv_dm* dm = allocate(128);
  ASSERT_NE(dm, nullptr);
  Mr region(ibv_reg_dm_mr(pd.get(), dm, 64, 64, dm_access));
  ASSERT_TRUE(region);
  EXPECT_EQ(ibv_free_dm(dm), EBUSY) << "a region is in it";
  Buffer from(pd.get(), 8);
  from.fill(5);
  ibv_sge sge = from.all();
  ibv_send_wr wr = send_wr(1, sge, IBV_WR_RDMA_WRITE);
  wr.wr.rdma.remote_addr = 16;
  wr.wr.rdma.rkey = region->rkey;
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_TRUE(completed(wait_for(a_cq.get()), 1));
  std::uint8_t out[8];
  EXPECT_EQ(ibv_memcpy_from_dm(out, dm, 64 + 16, 8), 0);
  EXPECT_EQ(std::memcmp(out, from.data(), 8), 0);
  region.reset();
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(DeviceMemory, a_region_must_count_from_zero_and_fit) {
  ibv_dm* dm = allocate(128);
  EXPECT_EQ(ibv_reg_dm_mr(pd.get(), dm, 0, 128, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_reg_dm_mr(pd.get(), dm, 4, 128, dm_access), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(DeviceMemory, an_imported_handle_shows_the_same_memory) {
  ibv_dm* dm = allocate(64);
  ibv_dm* imported = ibv_import_dm(context.get(), dm->handle);
  ASSERT_NE(imported, nullptr);
  const std::uint32_t in = 77;
  std::uint32_t out = 0;
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 0, &in, 4), 0);
  EXPECT_EQ(ibv_memcpy_from_dm(&out, imported, 0, 4), 0);
  EXPECT_EQ(out, in);
  ibv_unimport_dm(imported);
  EXPECT_EQ(ibv_free_dm(dm), 0);
  EXPECT_EQ(ibv_import_dm(context.get(), 9999), nullptr);
}

// ---- on-demand paging

constexpr int on_demand = all_access | IBV_ACCESS_ON_DEMAND;
constexpr std::size_t page = LonePages::page;

class OnDemand : public ConnectedTest {
 protected:
  ibv_send_wr write(ibv_sge& sge, std::uint8_t* to, std::uint32_t rkey) {
    ibv_send_wr wr = send_wr(1, sge, IBV_WR_RDMA_WRITE);
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(to);
    wr.wr.rdma.rkey = rkey;
    return wr;
  }
  LonePages pages;
  std::uint8_t* const memory = pages.data;
};

TEST_F(OnDemand, a_region_follows_what_is_mapped_there) {
  Mr region(ibv_reg_mr(pd.get(), memory, 4 * page, on_demand));
  ASSERT_TRUE(region);
  ASSERT_EQ(::mmap(memory, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            memory);
  Buffer from(pd.get(), 16);
  from.fill(3);
  ibv_sge sge = from.all();
  ASSERT_EQ(post(a.get(), write(sge, memory, region->rkey)), 0);
  ASSERT_TRUE(completed(wait_for(a_cq.get()), 1));
  EXPECT_EQ(std::memcmp(memory, from.data(), 16), 0);
}

TEST_F(OnDemand, one_region_covers_the_whole_address_space) {
  Mr region(ibv_reg_mr(pd.get(), nullptr, SIZE_MAX, on_demand));
  ASSERT_TRUE(region);
  std::uint8_t from[16];
  std::memset(from, 9, sizeof from);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(from), sizeof from, region->lkey};
  ASSERT_EQ(post(a.get(), write(sge, memory + page, region->rkey)), 0);
  ASSERT_TRUE(completed(wait_for(a_cq.get()), 1));
  EXPECT_EQ(std::memcmp(memory + page, from, sizeof from), 0);
}

TEST_F(OnDemand, an_address_where_nothing_is_fails_the_request_and_not_the_process) {
  Mr region(ibv_reg_mr(pd.get(), nullptr, SIZE_MAX, on_demand));
  pages.unmap_page(1);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(memory + page), 16, region->lkey};
  ASSERT_EQ(post(a.get(), write(sge, memory, region->rkey)), 0);
  EXPECT_TRUE(completed(wait_for(a_cq.get()), 1, IBV_WC_LOC_PROT_ERR)) << "the local piece";
}

TEST_F(OnDemand, a_remote_address_where_nothing_is_fails_the_request_and_not_the_process) {
  Mr region(ibv_reg_mr(pd.get(), memory, 4 * page, on_demand));
  pages.unmap_page(1);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(memory), 16, region->lkey};
  ASSERT_EQ(post(a.get(), write(sge, memory + page, region->rkey)), 0);
  EXPECT_TRUE(completed(wait_for(a_cq.get()), 1, IBV_WC_REM_OP_ERR));
}

TEST_F(OnDemand, a_receive_into_nothing_fails_and_not_the_process) {
  Mr region(ibv_reg_mr(pd.get(), memory, 4 * page, on_demand));
  pages.unmap_page(1);
  ASSERT_EQ(post_recv(b.get(), 5, ibv_sge{reinterpret_cast<std::uint64_t>(memory + page), 16, region->lkey}),
            0);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(memory), 16, region->lkey};
  ASSERT_EQ(post(a.get(), send_wr(6, sge)), 0);
  EXPECT_TRUE(completed(wait_for(b_cq.get()), 5, IBV_WC_LOC_PROT_ERR));
}

TEST_F(OnDemand, prefetching_answers_as_the_man_page_says) {
  Mr region(ibv_reg_mr(pd.get(), memory, 4 * page, on_demand));
  Mr read_only(ibv_reg_mr(pd.get(), memory, page, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND));
  Mr pinned(ibv_reg_mr(pd.get(), memory, page, IBV_ACCESS_LOCAL_WRITE));
  const Pd other_pd(ibv_alloc_pd(context.get()));
  const auto at = reinterpret_cast<std::uint64_t>(memory);
  pages.unmap_page(3);
  const struct {
    const char* what;
    ibv_pd* pd;
    ibv_advise_mr_advice advice;
    ibv_sge range;
    int result;
  } rows[] = {
      {"read", pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, {at, page, region->lkey}, 0},
      {"write", pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, {at, page, region->lkey}, 0},
      {"no fault", pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, {at, page, region->lkey}, 0},
      {"not mapped", pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, {at + 3 * page, page, region->lkey}, EFAULT},
      {"out of bounds", pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, {at, 5 * page, region->lkey}, EFAULT},
      {"no such key", pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, {at, page, 0x77770001}, EFAULT},
      {"for writing", pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, {at, page, read_only->lkey}, EPERM},
      {"another domain", other_pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, {at, page, region->lkey}, EPERM},
      {"no on-demand region", pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, {at, page, pinned->lkey}, EINVAL},
      {"unknown advice", pd.get(), static_cast<ibv_advise_mr_advice>(3), {at, page, region->lkey}, ENOTSUP},
  };
  for (const auto& row : rows) {
    ibv_sge range = row.range;
    EXPECT_EQ(ibv_advise_mr(row.pd, row.advice, IBV_ADVISE_MR_FLAG_FLUSH, &range, 1), row.result) << row.what;
  }
}

class NullRegion : public ConnectedTest {
 protected:
  static constexpr std::size_t most = 5u << 20;  // more than one piece of the region holds
  Mr null{ibv_alloc_null_mr(pd.get())};
  // Addresses in it mean nothing; these would trap.
  ibv_sge any(std::size_t length) const { return {0x10, static_cast<std::uint32_t>(length), null->lkey}; }
  void write(ibv_wr_opcode opcode, ibv_sge local, const Buffer& remote) {
    ibv_send_wr wr = send_wr(1, local, opcode);
    wr.wr.rdma = {remote.addr(), remote.rkey()};
    ASSERT_EQ(post(a.get(), wr), 0);
    ASSERT_TRUE(completed(wait_for(a_cq.get()), 1));
  }
};

TEST_F(NullRegion, reads_as_zeros_and_discards_what_is_written) {
  ASSERT_TRUE(null);
  Buffer remote(pd.get(), most);
  for (const std::size_t length : {std::size_t{8}, std::size_t{65536}, most}) {
    SCOPED_TRACE(length);
    remote.fill(3);
    const std::vector<std::uint8_t> before = remote.bytes();
    write(IBV_WR_RDMA_READ, any(length), remote);
    EXPECT_EQ(remote.bytes(), before);
    write(IBV_WR_RDMA_WRITE, any(length), remote);  // still zeros, whatever was written to it
    EXPECT_EQ(
        std::ranges::count(remote.bytes().begin(), remote.bytes().begin() + static_cast<long>(length), 0),
        static_cast<long>(length));
    EXPECT_TRUE(std::equal(remote.bytes().begin() + static_cast<long>(length), remote.bytes().end(),
                           before.begin() + static_cast<long>(length)));
  }
}

TEST_F(NullRegion, takes_the_part_of_a_message_that_nobody_wants) {
  Buffer from(pd.get(), 24), to(pd.get(), 16);
  from.fill(9);
  ibv_sge pieces[] = {to.sge(0, 8), any(8), to.sge(8, 8)};
  ibv_recv_wr recv{.wr_id = 2, .next = nullptr, .sg_list = pieces, .num_sge = 3}, *bad = nullptr;
  ASSERT_EQ(ibv_post_recv(b.get(), &recv, &bad), 0);
  ibv_sge sge = from.all();
  ASSERT_EQ(post(a.get(), send_wr(1, sge)), 0);
  ASSERT_TRUE(completed(wait_for(b_cq.get()), 2));
  EXPECT_TRUE(std::equal(to.bytes().begin(), to.bytes().begin() + 8, from.bytes().begin()));
  EXPECT_TRUE(std::equal(to.bytes().begin() + 8, to.bytes().end(), from.bytes().begin() + 16));
}

TEST_F(NullRegion, is_nobodys_target_and_stays_what_it_is) {
  Buffer from(pd.get(), 8);
  EXPECT_EQ(ibv_rereg_mr(null.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                         IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE),
            IBV_REREG_MR_ERR_INPUT);
  ibv_sge sge = from.all();
  ibv_send_wr wr = send_wr(1, sge, IBV_WR_RDMA_WRITE);
  wr.wr.rdma = {0x10, null->lkey};
  ASSERT_EQ(post(a.get(), wr), 0);
  EXPECT_TRUE(completed(wait_for(a_cq.get()), 1, IBV_WC_REM_ACCESS_ERR));
}

}  // namespace
}  // namespace weir::verbs_test

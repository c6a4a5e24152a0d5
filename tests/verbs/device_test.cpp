// The device and its port: what programs query before anything else (as ibv_devinfo shows it).
#include <endian.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

class DeviceTest : public VerbsTest {};

TEST_F(DeviceTest, the_list_holds_one_device_and_ends_with_null) {
  int count = -1;
  ibv_device** list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(count, 1);
  EXPECT_STREQ(ibv_get_device_name(list[0]), "weir0");
  EXPECT_EQ(list[1], nullptr);
  EXPECT_EQ(list[0]->node_type, IBV_NODE_CA);
  EXPECT_EQ(list[0]->transport_type, IBV_TRANSPORT_IB);
  EXPECT_NE(ibv_get_device_guid(list[0]), 0u);
  ibv_free_device_list(list);
}

TEST_F(DeviceTest, a_device_can_be_opened_many_times) {
  Context second = open_device();
  EXPECT_NE(second.get(), context.get());
  EXPECT_EQ(second->device, context->device);
  EXPECT_NE(second->async_fd, context->async_fd);
}

// The header's inline functions look behind the public struct only if these say so.
TEST_F(DeviceTest, the_context_is_of_the_extended_abi) {
  EXPECT_EQ(context->abi_compat, reinterpret_cast<void*>(UINTPTR_MAX));
  verbs_context* extended = verbs_get_ctx(context.get());
  ASSERT_NE(extended, nullptr);
  EXPECT_EQ(extended->sz, sizeof(verbs_context));
  EXPECT_GE(context->num_comp_vectors, 1);
  EXPECT_GE(context->cmd_fd, 0);
}

// mlx5dv_is_supported() compares a pointer behind the public struct: it must be readable and not a
// provider's.
TEST_F(DeviceTest, behind_the_device_are_zeros) {
  const auto* tail = reinterpret_cast<const unsigned char*>(context->device + 1);
  for (std::size_t i = 0; i < sizeof(void*) * 4; ++i) EXPECT_EQ(tail[i], 0);
}

TEST_F(DeviceTest, attributes_agree_between_the_two_queries) {
  ibv_device_attr plain;
  ibv_device_attr_ex extended;
  ASSERT_EQ(ibv_query_device(context.get(), &plain), 0);
  ASSERT_EQ(ibv_query_device_ex(context.get(), nullptr, &extended), 0);
  EXPECT_EQ(std::memcmp(&plain, &extended.orig_attr, sizeof plain), 0);
  EXPECT_EQ(plain.phys_port_cnt, 1);
  EXPECT_EQ(plain.node_guid, ibv_get_device_guid(context->device));
  EXPECT_GT(plain.max_qp, 0);
  EXPECT_GT(plain.max_qp_wr, 0);
  EXPECT_GT(plain.max_sge, 0);
  EXPECT_GT(plain.max_cqe, 0);
  EXPECT_GT(plain.max_mr_size, 0u);
}

TEST_F(DeviceTest, an_extended_query_with_unknown_input_is_refused) {
  ibv_query_device_ex_input input{1};
  ibv_device_attr_ex attr;
  EXPECT_EQ(ibv_query_device_ex(context.get(), &input, &attr), EINVAL);
}

// A program compiled against an older header passes a shorter struct.
TEST_F(DeviceTest, an_extended_query_writes_no_more_than_it_was_given) {
  std::vector<unsigned char> memory(sizeof(ibv_device_attr_ex) + 64, 0xaa);
  const std::size_t size = offsetof(ibv_device_attr_ex, odp_caps);
  verbs_context* extended = verbs_get_ctx(context.get());
  ASSERT_EQ(extended->query_device_ex(context.get(), nullptr,
                                      reinterpret_cast<ibv_device_attr_ex*>(memory.data()), size),
            0);
  for (std::size_t i = size; i < memory.size(); ++i) ASSERT_EQ(memory[i], 0xaa) << i;
}

TEST_F(DeviceTest, the_port_is_active_ethernet) {
  ibv_port_attr attr;
  ASSERT_EQ(ibv_query_port(context.get(), 1, &attr), 0);
  EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(attr.active_mtu, IBV_MTU_4096);
  EXPECT_GE(attr.gid_tbl_len, 1);
  EXPECT_EQ(attr.pkey_tbl_len, 1);
}

TEST_F(DeviceTest, other_ports_do_not_exist) {
  ibv_port_attr attr;
  for (const std::uint8_t port : {0, 2, 255}) {
    EXPECT_EQ(ibv_query_port(context.get(), port, &attr), EINVAL) << int{port};
    ibv_gid gid;
    EXPECT_NE(ibv_query_gid(context.get(), port, 0, &gid), 0);
    __be16 pkey;
    EXPECT_NE(ibv_query_pkey(context.get(), port, 0, &pkey), 0);
  }
}

// Programs built before ibv_port_attr grew own no bytes behind link_layer; they call the exported symbol.
TEST_F(DeviceTest, the_exported_port_query_writes_only_the_oldest_struct) {
  std::vector<unsigned char> memory(sizeof(ibv_port_attr) + 64, 0xaa);
  ASSERT_EQ((ibv_query_port)(context.get(), 1, reinterpret_cast<_compat_ibv_port_attr*>(memory.data())), 0);
  for (std::size_t i = offsetof(ibv_port_attr, flags); i < memory.size(); ++i)
    ASSERT_EQ(memory[i], 0xaa) << i;
  ibv_port_attr full{};
  ASSERT_EQ(ibv_query_port(context.get(), 1, &full), 0);
  EXPECT_EQ(std::memcmp(memory.data(), &full, offsetof(ibv_port_attr, link_layer) + 1), 0);
}

TEST_F(DeviceTest, every_gid_is_told_alike_by_every_query) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  std::vector<ibv_gid_entry> table(static_cast<std::size_t>(port.gid_tbl_len) + 3);
  const auto count = ibv_query_gid_table(context.get(), table.data(), table.size(), 0);
  ASSERT_GT(count, 0);
  ASSERT_LE(count, port.gid_tbl_len);
  for (int i = 0; i < count; ++i) {
    ibv_gid gid;
    ibv_gid_entry entry;
    ASSERT_EQ(ibv_query_gid(context.get(), 1, i, &gid), 0);
    ASSERT_EQ(ibv_query_gid_ex(context.get(), 1, static_cast<std::uint32_t>(i), &entry, 0), 0);
    EXPECT_EQ(std::memcmp(&gid, &entry.gid, sizeof gid), 0);
    EXPECT_EQ(entry.gid_index, static_cast<std::uint32_t>(i));
    EXPECT_EQ(entry.port_num, 1u);
    EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2));
    EXPECT_EQ(std::memcmp(&entry, &table[static_cast<std::size_t>(i)], sizeof entry), 0);
  }
}

TEST_F(DeviceTest, a_gid_table_that_does_not_fit_is_refused) {
  ibv_gid_entry none;
  EXPECT_EQ(ibv_query_gid_table(context.get(), &none, 0, 0), -EINVAL);
  std::vector<ibv_gid_entry> table(64);
  EXPECT_EQ(ibv_query_gid_table(context.get(), table.data(), table.size(), 1), -EINVAL) << "unknown flags";
}

// Tables have room for addresses yet to come; the two kinds of query tell an empty place each in its way.
TEST_F(DeviceTest, an_empty_place_of_the_gid_table_is_no_gid) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  std::vector<ibv_gid_entry> table(static_cast<std::size_t>(port.gid_tbl_len));
  const auto count = ibv_query_gid_table(context.get(), table.data(), table.size(), 0);
  if (count == port.gid_tbl_len) GTEST_SKIP() << "this host has an address for every place";
  ibv_gid_entry entry;
  EXPECT_EQ(ibv_query_gid_ex(context.get(), 1, static_cast<std::uint32_t>(count), &entry, 0), ENODATA);
  ibv_gid gid, zero{};
  EXPECT_EQ(ibv_query_gid(context.get(), 1, static_cast<int>(count), &gid), 0);
  EXPECT_EQ(std::memcmp(&gid, &zero, sizeof gid), 0);
}

TEST_F(DeviceTest, gids_behind_the_table_are_refused) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  ibv_gid gid;
  ibv_gid_entry entry;
  errno = 0;
  EXPECT_NE(ibv_query_gid(context.get(), 1, port.gid_tbl_len, &gid), 0);
  EXPECT_NE(errno, 0);
  EXPECT_NE(ibv_query_gid(context.get(), 1, -1, &gid), 0);
  EXPECT_EQ(ibv_query_gid_ex(context.get(), 1, static_cast<std::uint32_t>(port.gid_tbl_len), &entry, 0),
            EINVAL);
  EXPECT_EQ(ibv_query_gid_ex(context.get(), 2, 0, &entry, 0), EINVAL);
  EXPECT_EQ(ibv_query_gid_ex(context.get(), 1, 0, &entry, 1), EINVAL);
}

// As the kernel does for a NIC: programs choose a GID by its place or kind, and no other host reaches these.
TEST_F(DeviceTest, loopback_is_a_gid_only_where_there_is_no_other) {
  const auto loopback = [](const ibv_gid_entry& entry) {
    const std::uint8_t* raw = entry.gid.raw;
    const bool v4 =
        raw[10] == 0xff && raw[11] == 0xff && std::all_of(raw, raw + 10, [](auto b) { return b == 0; });
    return v4 ? raw[12] == 127 : raw[15] == 1 && std::all_of(raw, raw + 15, [](auto b) { return b == 0; });
  };
  std::vector<ibv_gid_entry> table(256);
  const auto count = ibv_query_gid_table(context.get(), table.data(), table.size(), 0);
  ASSERT_GT(count, 0);
  const auto loopbacks = std::count_if(table.begin(), table.begin() + count, loopback);
  EXPECT_TRUE(loopbacks == 0 || loopbacks == count) << loopbacks << " of " << count;
}

TEST_F(DeviceTest, the_partition_is_the_default_one) {
  __be16 pkey = 0;
  ASSERT_EQ(ibv_query_pkey(context.get(), 1, 0, &pkey), 0);
  EXPECT_EQ(be16toh(pkey), 0xffff);
  EXPECT_EQ(ibv_get_pkey_index(context.get(), 1, htobe16(0xffff)), 0);
  EXPECT_NE(ibv_query_pkey(context.get(), 1, 1, &pkey), 0);
  EXPECT_EQ(ibv_get_pkey_index(context.get(), 1, htobe16(0x1234)), -1);
}

TEST_F(DeviceTest, everything_has_a_name) {
  std::set<std::string> seen;
  for (int i = 0; i <= IBV_WC_TM_RNDV_INCOMPLETE; ++i) {
    const char* name = ibv_wc_status_str(static_cast<ibv_wc_status>(i));
    ASSERT_NE(name, nullptr);
    EXPECT_TRUE(seen.insert(name).second) << name;
  }
  EXPECT_NE(ibv_wc_status_str(static_cast<ibv_wc_status>(12345)), nullptr);
  EXPECT_NE(ibv_wc_status_str(static_cast<ibv_wc_status>(-1)), nullptr);
  for (int i = 0; i <= IBV_EVENT_WQ_FATAL; ++i)
    EXPECT_NE(ibv_event_type_str(static_cast<ibv_event_type>(i)), nullptr);
  EXPECT_STREQ(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
}

TEST_F(DeviceTest, rates_convert_there_and_back) {
  for (const ibv_rate rate : {IBV_RATE_2_5_GBPS, IBV_RATE_10_GBPS, IBV_RATE_40_GBPS, IBV_RATE_100_GBPS}) {
    EXPECT_EQ(mbps_to_ibv_rate(ibv_rate_to_mbps(rate)), rate);
  }
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_10_GBPS), 4);
  EXPECT_EQ(mult_to_ibv_rate(4), IBV_RATE_10_GBPS);
  EXPECT_EQ(ibv_rate_to_mult(static_cast<ibv_rate>(999)), -1);
}

// The kernel's own answer to a file beyond the limit is a signal that ends the program.
TEST_F(DeviceTest, under_a_limit_of_file_sizes_it_does_not_open_and_says_why) {
  const auto open_in_a_child = [&] {
    const rlimit one_gibibyte{1u << 30, 1u << 30};
    if (::setrlimit(RLIMIT_FSIZE, &one_gibibyte) != 0) ::_exit(2);
    ::_exit(ibv_open_device(context->device) == nullptr && errno == EFBIG ? 0 : 1);
  };
  EXPECT_EXIT(open_in_a_child(), testing::ExitedWithCode(0), "ulimit -f");
}

// What a caller must not reach through a null pointer: absent operations say so.
TEST_F(DeviceTest, absent_operations_are_refused) {
  errno = 0;
  ibv_counters_init_attr counters{};
  EXPECT_EQ(ibv_create_counters(context.get(), &counters), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  errno = 0;
  EXPECT_EQ(ibv_reg_dmabuf_mr(pd.get(), 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace weir::verbs_test

// The structures of each version, byte by byte: a wrong offset would crash users' programs. The expected
// numbers follow from the members' order and C's layout rules on x86-64.
#include <gtest/gtest.h>

#include <cstddef>

#include "tests/nccl/versions.hpp"

namespace weir::nccl {
namespace {

TEST(NcclLayout, properties_have_each_member_where_nccl_reads_it) {
  EXPECT_EQ(offsetof(v8::Properties, name), 0u);
  EXPECT_EQ(offsetof(v8::Properties, pci_path), 8u);
  EXPECT_EQ(offsetof(v8::Properties, guid), 16u);
  EXPECT_EQ(offsetof(v8::Properties, pointer_support), 24u);
  EXPECT_EQ(offsetof(v8::Properties, registration_is_global), 28u);
  EXPECT_EQ(offsetof(v8::Properties, speed_mbps), 32u);
  EXPECT_EQ(offsetof(v8::Properties, port), 36u);
  EXPECT_EQ(offsetof(v8::Properties, latency_us), 40u);
  EXPECT_EQ(offsetof(v8::Properties, max_comms), 44u);
  EXPECT_EQ(offsetof(v8::Properties, max_receives), 48u);
  EXPECT_EQ(offsetof(v8::Properties, device_type), 52u);
  EXPECT_EQ(offsetof(v8::Properties, device_version), 56u);
  EXPECT_EQ(sizeof(v8::Properties), 64u);
}

template <class Properties>
void expect_from_9_on() {
  EXPECT_EQ(offsetof(Properties, force_flush), 32u);
  EXPECT_EQ(offsetof(Properties, speed_mbps), 36u);
  EXPECT_EQ(offsetof(Properties, port), 40u);
  EXPECT_EQ(offsetof(Properties, latency_us), 44u);
  EXPECT_EQ(offsetof(Properties, max_comms), 48u);
  EXPECT_EQ(offsetof(Properties, max_receives), 52u);
  EXPECT_EQ(offsetof(Properties, device_type), 56u);
  EXPECT_EQ(offsetof(Properties, device_version), 60u);
  EXPECT_EQ(offsetof(Properties, merged), 64u);
}

TEST(NcclLayout, properties_grow_version_by_version) {
  expect_from_9_on<v9::Properties>();
  expect_from_9_on<v10::Properties>();
  expect_from_9_on<v11::Properties>();
  expect_from_9_on<v12::Properties>();
  EXPECT_EQ(sizeof(v9::MergedDevices), 20u);
  EXPECT_EQ(sizeof(v11::MergedDevices), 20u);
  EXPECT_EQ(sizeof(v12::MergedDevices), 36u);
  EXPECT_EQ(offsetof(v9::Properties, max_p2p_bytes), 88u);
  EXPECT_EQ(offsetof(v9::Properties, max_collective_bytes), 96u);
  EXPECT_EQ(sizeof(v9::Properties), 104u);
  EXPECT_EQ(sizeof(v10::Properties), 104u);
  EXPECT_EQ(offsetof(v11::Properties, max_multi_request), 104u);
  EXPECT_EQ(sizeof(v11::Properties), 112u);
  EXPECT_EQ(offsetof(v12::Properties, max_p2p_bytes), 104u);
  EXPECT_EQ(offsetof(v12::Properties, max_collective_bytes), 112u);
  EXPECT_EQ(offsetof(v12::Properties, max_multi_request), 120u);
  EXPECT_EQ(offsetof(v12::Properties, rail), 124u);
  EXPECT_EQ(offsetof(v12::Properties, plane), 126u);
  EXPECT_EQ(sizeof(v12::Properties), 128u);
}

// A table has only pointers: the name, then the functions in order.
template <class Net>
std::size_t nth(std::size_t offset) {
  return offset / sizeof(void*);
}

template <class Net>
void expect_order() {
  EXPECT_EQ(nth<Net>(offsetof(Net, name)), 0u);
  EXPECT_EQ(nth<Net>(offsetof(Net, init)), 1u);
  EXPECT_EQ(nth<Net>(offsetof(Net, devices)), 2u);
  EXPECT_EQ(nth<Net>(offsetof(Net, get_properties)), 3u);
  EXPECT_EQ(nth<Net>(offsetof(Net, listen)), 4u);
  EXPECT_EQ(nth<Net>(offsetof(Net, connect)), 5u);
  EXPECT_EQ(nth<Net>(offsetof(Net, accept)), 6u);
  EXPECT_EQ(nth<Net>(offsetof(Net, reg_mr)), 7u);
  EXPECT_EQ(nth<Net>(offsetof(Net, reg_mr_dma_buf)), 8u);
  EXPECT_EQ(nth<Net>(offsetof(Net, dereg_mr)), 9u);
  EXPECT_EQ(nth<Net>(offsetof(Net, isend)), 10u);
  EXPECT_EQ(nth<Net>(offsetof(Net, irecv)), 11u);
  EXPECT_EQ(nth<Net>(offsetof(Net, iflush)), 12u);
  EXPECT_EQ(nth<Net>(offsetof(Net, test)), 13u);
  EXPECT_EQ(nth<Net>(offsetof(Net, close_send)), 14u);
  EXPECT_EQ(nth<Net>(offsetof(Net, close_receive)), 15u);
  EXPECT_EQ(nth<Net>(offsetof(Net, close_listen)), 16u);
  EXPECT_EQ(nth<Net>(offsetof(Net, get_device_mr)), 17u);
  EXPECT_EQ(nth<Net>(offsetof(Net, irecv_consumed)), 18u);
}

TEST(NcclLayout, tables_have_each_function_where_nccl_calls_it) {
  expect_order<v8::Net>();
  expect_order<v9::Net>();
  expect_order<v10::Net>();
  expect_order<v11::Net>();
  expect_order<v12::Net>();
  EXPECT_EQ(sizeof(v8::Net), 19 * sizeof(void*));
  EXPECT_EQ(sizeof(v9::Net), 20 * sizeof(void*));
  EXPECT_EQ(sizeof(v10::Net), 20 * sizeof(void*));
  EXPECT_EQ(sizeof(v11::Net), 22 * sizeof(void*));
  EXPECT_EQ(sizeof(v12::Net), 22 * sizeof(void*));
  EXPECT_EQ(offsetof(v12::Net, make_virtual_device), 19 * sizeof(void*));
  EXPECT_EQ(offsetof(v12::Net, finalize), 20 * sizeof(void*));
  EXPECT_EQ(offsetof(v12::Net, set_attributes), 21 * sizeof(void*));
}

}  // namespace
}  // namespace weir::nccl

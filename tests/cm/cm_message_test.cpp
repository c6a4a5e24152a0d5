#include "verbs/cm/cm_message.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <cstring>
#include <functional>

namespace weir::cm {
namespace {

Endpoint v4(const char* text, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET, text, &address.sin_addr), 1);
  return *endpoint_of(reinterpret_cast<const sockaddr*>(&address));
}

CmMessage sample() {
  CmMessage message;
  message.type = MessageType::req;
  message.local_id = 0x01020304;
  message.port_space = RDMA_PS_TCP;
  message.source = v4("127.0.0.1", 40000);
  message.destination = v4("127.0.0.1", 7471);
  message.qpn = 0xabcdef;
  message.psn = 0x123456;
  message.qkey = RDMA_UDP_QKEY;
  message.responder_resources = 16;
  message.initiator_depth = 15;
  message.flow_control = 1;
  message.retry_count = 7;
  message.rnr_retry_count = 6;
  message.srq = 1;
  message.transport = Transport::unreliable;
  message.ece = {.vendor_id = 0x15b3, .options = 0x10000001, .comp_mask = 0};
  message.private_data.assign(req_private_bytes, std::byte{0x5a});
  return message;
}

TEST(CmMessage, every_field_survives_the_way) {
  const auto sent = sample();
  const auto got = parse(encode(sent));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->type, sent.type);
  EXPECT_EQ(got->local_id, sent.local_id);
  EXPECT_EQ(got->remote_id, sent.remote_id);
  EXPECT_EQ(got->port_space, sent.port_space);
  EXPECT_TRUE(got->source.same_ip(sent.source));
  EXPECT_EQ(got->source.port, sent.source.port);
  EXPECT_TRUE(got->destination.same_ip(sent.destination));
  EXPECT_EQ(got->destination.port, sent.destination.port);
  EXPECT_EQ(got->qpn, sent.qpn);
  EXPECT_EQ(got->psn, sent.psn);
  EXPECT_EQ(got->qkey, sent.qkey);
  EXPECT_EQ(got->responder_resources, sent.responder_resources);
  EXPECT_EQ(got->initiator_depth, sent.initiator_depth);
  EXPECT_EQ(got->flow_control, sent.flow_control);
  EXPECT_EQ(got->retry_count, sent.retry_count);
  EXPECT_EQ(got->rnr_retry_count, sent.rnr_retry_count);
  EXPECT_EQ(got->srq, sent.srq);
  EXPECT_EQ(got->transport, sent.transport);
  EXPECT_EQ(got->ece.vendor_id, sent.ece.vendor_id);
  EXPECT_EQ(got->ece.options, sent.ece.options);
  EXPECT_EQ(got->private_data, sent.private_data);
}

TEST(CmMessage, every_truncation_of_the_fixed_part_is_malformed) {
  auto message = sample();
  message.private_data.clear();
  const auto bytes = encode(message);
  ASSERT_TRUE(parse(bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse(std::span(bytes).first(size))) << size;
}

TEST(CmMessage, private_data_is_limited_by_kind) {
  const struct {
    MessageType type;
    std::size_t limit;
  } cases[] = {{MessageType::req, 56},       {MessageType::rep, 196},      {MessageType::rej, 148},
               {MessageType::sidr_req, 180}, {MessageType::sidr_rep, 136}, {MessageType::mra, 0},
               {MessageType::rtu, 0},        {MessageType::dreq, 0},       {MessageType::drep, 0}};
  for (const auto& one : cases) {
    auto message = sample();
    message.type = one.type;
    message.remote_id = 9;
    message.private_data.resize(one.limit);
    EXPECT_TRUE(parse(encode(message))) << static_cast<int>(one.type);
    message.private_data.resize(one.limit + 1);
    EXPECT_FALSE(parse(encode(message))) << static_cast<int>(one.type);
  }
}

struct Spoiled {
  const char* name;
  std::function<void(CmMessage&)> spoil;
};
class Illegal : public testing::TestWithParam<Spoiled> {};

TEST_P(Illegal, is_not_parsed) {
  auto message = sample();
  GetParam().spoil(message);
  EXPECT_FALSE(parse(encode(message)));
}

INSTANTIATE_TEST_SUITE_P(
    CmMessage, Illegal,
    testing::Values(Spoiled{"type_zero", [](CmMessage& m) { m.type = MessageType{0}; }},
                    Spoiled{"type_unknown", [](CmMessage& m) { m.type = MessageType{10}; }},
                    Spoiled{"port_space_unknown", [](CmMessage& m) { m.port_space = 0x107; }},
                    Spoiled{"to_no_address", [](CmMessage& m) { m.destination = any_v4(); }},
                    Spoiled{"request_without_a_number", [](CmMessage& m) { m.local_id = 0; }},
                    Spoiled{"answer_to_nobody", [](CmMessage& m) { m.type = MessageType::rtu; }},
                    Spoiled{"rejection_of_nothing",
                            [](CmMessage& m) {
                              m.type = MessageType::rej;
                              m.local_id = 0;
                            }},
                    Spoiled{"qpn_over_24_bits", [](CmMessage& m) { m.qpn = 1 << 24; }},
                    Spoiled{"transport_unknown", [](CmMessage& m) { m.transport = Transport{3}; }},
                    Spoiled{"psn_over_24_bits", [](CmMessage& m) { m.psn = 1 << 24; }},
                    Spoiled{"retries_over_three_bits", [](CmMessage& m) { m.retry_count = 8; }},
                    Spoiled{"rnr_retries_over_three_bits", [](CmMessage& m) { m.rnr_retry_count = 8; }}),
    [](const auto& one) { return one.param.name; });

TEST(CmMessage, of_another_version_is_malformed) {
  auto bytes = encode(sample());
  bytes[0] = static_cast<std::byte>(std::to_integer<int>(bytes[0]) + 1);
  EXPECT_FALSE(parse(bytes));
}

TEST(Endpoint, addresses_compare_by_the_gid_they_are) {
  const auto loopback = v4("127.0.0.1", 1);
  const auto gid = loopback.gid();
  const std::uint8_t expected[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  EXPECT_TRUE(std::equal(std::begin(expected), std::end(expected), gid.raw));
  EXPECT_TRUE(loopback.is_v4());
  EXPECT_FALSE(loopback.is_any());
  EXPECT_TRUE(any_v4().is_any());
  EXPECT_TRUE(any_v6().is_any());
  EXPECT_FALSE(any_v6().is_v4());
}

TEST(Endpoint, survives_a_socket_address) {
  for (const auto* text : {"::1", "fe80::1", "2001:db8::42"}) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(4791);
    address.sin6_scope_id = 3;
    ASSERT_EQ(::inet_pton(AF_INET6, text, &address.sin6_addr), 1);
    const auto endpoint = endpoint_of(reinterpret_cast<const sockaddr*>(&address));
    ASSERT_TRUE(endpoint);
    sockaddr_storage back{};
    store(*endpoint, back);
    EXPECT_EQ(std::memcmp(&back, &address, sizeof address), 0) << text;
  }
}

TEST(Endpoint, other_families_are_none) {
  sockaddr address{};
  address.sa_family = AF_UNIX;
  EXPECT_FALSE(endpoint_of(&address));
  EXPECT_FALSE(endpoint_of(nullptr));
  EXPECT_EQ(size_of(&address), 0u);
}

}  // namespace
}  // namespace weir::cm

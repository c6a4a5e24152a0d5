// The connection manager's messages compared with those of Linux, and encoded and parsed again.
#include "wire/mad.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "captures.hpp"
#include "wire/roce.hpp"

namespace weir::wire {
namespace {

std::vector<std::vector<std::byte>> mads_of(const std::string& capture) {
  std::vector<std::vector<std::byte>> mads;
  for (const auto& bytes : test::packets_of(capture)) {
    const auto frame = parse(bytes);
    if (!frame || frame->packet.bth.destination != cm_qpn) continue;
    EXPECT_EQ(frame->packet.deth.qkey, cm_qkey);
    mads.emplace_back(frame->packet.payload.begin(), frame->packet.payload.end());
  }
  return mads;
}

template <class Message>
const Message* first(const std::vector<Mad>& mads) {
  for (const Mad& mad : mads)
    if (const auto* message = std::get_if<Message>(&mad.message)) return message;
  return nullptr;
}

std::vector<Mad> parsed(const std::string& capture) {
  std::vector<Mad> all;
  for (const auto& bytes : mads_of(capture)) {
    const auto mad = parse_mad(bytes);
    EXPECT_TRUE(mad) << capture;
    if (mad) all.push_back(*mad);
  }
  return all;
}

class CapturedMads : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Captures, CapturedMads,
                         testing::Values("rc_basic.pcap", "rc_ipv6.pcap", "cm_rej.pcap", "cm_nolisten.pcap",
                                         "user_space_responder.pcap"));

TEST_P(CapturedMads, are_encoded_to_the_same_bytes) {
  const auto mads = mads_of(GetParam());
  ASSERT_FALSE(mads.empty());
  for (const auto& bytes : mads) {
    const auto mad = parse_mad(bytes);
    ASSERT_TRUE(mad);
    EXPECT_TRUE(std::ranges::equal(encode_mad(*mad), bytes));
  }
}

TEST(Mad, fields_of_a_request_are_where_linux_has_them) {
  const auto mads = parsed("rc_basic.pcap");
  ASSERT_FALSE(mads.empty());
  EXPECT_EQ(mads[0].transaction, 0x00000002093489dfu);
  const auto* req = first<CmReq>(mads);
  ASSERT_NE(req, nullptr);
  EXPECT_EQ(req->local_id, 0xdf893409u);
  EXPECT_EQ(req->ca_guid, 0x505400fffe770003u);
  EXPECT_EQ(req->qpn, 0x11u);
  EXPECT_EQ(req->responder_resources, 4);
  EXPECT_EQ(req->initiator_depth, 4);
  EXPECT_EQ(req->remote_cm_timeout, 0x14);
  EXPECT_EQ(req->local_cm_timeout, 0x14);
  EXPECT_EQ(req->transport, 0);
  EXPECT_EQ(req->starting_psn, 0x371d55u);
  EXPECT_EQ(req->retry_count, 5);
  EXPECT_EQ(req->rnr_retry_count, 7);
  EXPECT_EQ(req->path_mtu, 3);
  EXPECT_EQ(req->max_cm_retries, 15);
  EXPECT_EQ(req->flow_label, 0xbffe7u);
  EXPECT_EQ(req->packet_rate, 0);
  EXPECT_EQ(req->hop_limit, 0x40);
  EXPECT_EQ(req->ack_timeout, 0x13);
  const auto service = rdma_service(req->service_id);
  ASSERT_TRUE(service);
  EXPECT_EQ(service->port_space, port_space_tcp);
  EXPECT_EQ(service->port, 0x1d2f);
  EXPECT_EQ(rdma_service_id(service->port_space, service->port), req->service_id);
  const auto header = parse_rdma_cm_header(std::span(req->private_data).first<rdma_cm_header_bytes>());
  ASSERT_TRUE(header);
  EXPECT_FALSE(header->ipv6);
  EXPECT_EQ(header->source_port, 0xe648);
  EXPECT_EQ(header->source, (CmAddress{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0, 3}));
  EXPECT_EQ(header->destination, (CmAddress{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0, 2}));
  std::array<std::byte, rdma_cm_header_bytes> again{};
  encode_rdma_cm_header(*header, again);
  EXPECT_TRUE(std::ranges::equal(again, std::span(req->private_data).first(rdma_cm_header_bytes)));

  const auto* rep = first<CmRep>(mads);
  ASSERT_NE(rep, nullptr);
  EXPECT_EQ(rep->remote_id, req->local_id);
  const auto* rtu = first<CmRtu>(mads);
  ASSERT_NE(rtu, nullptr);
  EXPECT_EQ(rtu->local_id, req->local_id);
  EXPECT_EQ(rtu->remote_id, rep->local_id);
  const auto* dreq = first<CmDreq>(mads);
  ASSERT_NE(dreq, nullptr);
  EXPECT_TRUE(dreq->remote_qpn == req->qpn || dreq->remote_qpn == rep->qpn);
  EXPECT_NE(first<CmDrep>(mads), nullptr);
}

TEST(Mad, a_rejection_says_why) {
  const auto by_program = parsed("cm_rej.pcap"), by_nobody = parsed("cm_nolisten.pcap");
  ASSERT_NE(first<CmRej>(by_program), nullptr);
  EXPECT_EQ(first<CmRej>(by_program)->reason, 28);
  ASSERT_NE(first<CmRej>(by_nobody), nullptr);
  EXPECT_EQ(first<CmRej>(by_nobody)->reason, 8);
  EXPECT_EQ(first<CmRej>(by_nobody)->message, 0);
}

template <class Message, std::size_t i = 0>
void every_kind(const auto& act) {
  if constexpr (i < std::variant_size_v<Message>) {
    act(Message(std::in_place_index<i>));
    every_kind<Message, i + 1>(act);
  }
}

TEST(Mad, every_kind_survives_the_way_there_and_back) {
  std::mt19937 random(9);
  every_kind<decltype(Mad::message)>([&](const auto& message) {
    auto bytes = encode_mad({.transaction = 0x1122334455667788, .message = message});
    for (std::size_t i = 24; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random());
    const auto mad = parse_mad(bytes);
    ASSERT_TRUE(mad);
    EXPECT_EQ(mad->message.index(), message.index());
    const auto once = encode_mad(*mad);
    const auto again = parse_mad(once);
    ASSERT_TRUE(again);
    EXPECT_EQ(encode_mad(*again), once);
  });
}

TEST(Mad, others_are_refused) {
  const auto sound = encode_mad({.message = CmRtu{}});
  for (std::size_t length = 0; length < mad_bytes; ++length)
    EXPECT_FALSE(parse_mad(std::span(sound).first(length)));
  for (const std::size_t at : {0, 1, 2, 3, 16, 17}) {
    auto bad = sound;
    bad[at] ^= std::byte{0x80};
    EXPECT_FALSE(parse_mad(bad)) << at;
  }
  std::array<std::byte, rdma_cm_header_bytes> header{};
  EXPECT_FALSE(parse_rdma_cm_header(header)) << "IP version 0";
  EXPECT_FALSE(rdma_service(0x0000000101061d2f));
  EXPECT_FALSE(rdma_service(0x00000000aaaa1d2f));
}

}  // namespace
}  // namespace weir::wire

// Which carrier a path has, and which process a packet is for.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "rnic/types.hpp"
#include "verbs/nic/carrier/carrier_choice.hpp"
#include "verbs/nic/carrier/carrier_setting.hpp"
#include "verbs/nic/carrier/packet_target.hpp"
#include "verbs/nic/management_port.hpp"
#include "wire/mad.hpp"
#include "wire/roce.hpp"

namespace weir::verbs {
namespace {

using namespace std::chrono_literals;
using Time = link::Clock::time_point;

constexpr CarrierChoice::Path path{rnic::Gid{1}, rnic::Gid{2}}, other{rnic::Gid{1}, rnic::Gid{3}};

TEST(CarrierChoice, begins_with_datagrams) {
  const CarrierChoice choice;
  EXPECT_FALSE(choice.goes_by_stream(path));
  EXPECT_FALSE(choice.any_by_stream());
  EXPECT_FALSE(choice.waits());
}

TEST(CarrierChoice, sees_silence_when_a_message_is_sent_again) {
  CarrierChoice choice;
  const Time begun{};
  EXPECT_FALSE(choice.asks(path, begun));
  EXPECT_FALSE(choice.asks(path, begun + 1ms)) << "another connection's first request";
  EXPECT_TRUE(choice.waits());
  EXPECT_FALSE(choice.asks(other, begun + 40ms)) << "another path";
  EXPECT_TRUE(choice.asks(path, begun + 40ms));
  EXPECT_FALSE(choice.goes_by_stream(path)) << "silence alone moves nothing";
}

TEST(CarrierChoice, takes_anything_that_comes_for_an_answer) {
  CarrierChoice choice;
  const Time begun{};
  EXPECT_FALSE(choice.asks(path, begun));
  choice.heard(other);
  EXPECT_TRUE(choice.waits());
  choice.heard(path);
  EXPECT_FALSE(choice.waits());
  EXPECT_FALSE(choice.asks(path, begun + 40ms));
  EXPECT_TRUE(choice.asks(path, begun + 80ms));
}

TEST(CarrierChoice, moves_one_path_and_moves_it_back) {
  CarrierChoice choice;
  EXPECT_FALSE(choice.asks(path, Time{}));
  EXPECT_TRUE(choice.move(path));
  EXPECT_FALSE(choice.move(path)) << "it had moved";
  EXPECT_TRUE(choice.goes_by_stream(path));
  EXPECT_FALSE(choice.goes_by_stream(other));
  EXPECT_FALSE(choice.waits());
  choice.heard(path);
  EXPECT_TRUE(choice.goes_by_stream(path)) << "a datagram that is late is no reason to move back";
  choice.move_back(other);
  choice.move_back(path);
  EXPECT_FALSE(choice.any_by_stream());
  EXPECT_FALSE(choice.asks(path, Time{} + 1s)) << "it begins again";
}

TEST(CarrierChoice, asks_both_ends_what_they_hear) {
  CarrierChoice choice;
  const Time now = Time{} + 1h;
  EXPECT_FALSE(choice.doubt(path, now)) << "no stream, nobody to ask";
  choice.joined(path);
  EXPECT_TRUE(choice.waits());
  EXPECT_TRUE(choice.doubt(path, now));
  EXPECT_FALSE(choice.doubt(path, now + 1ms)) << "asked a moment ago";
  EXPECT_FALSE(choice.hears(path));
  EXPECT_FALSE(choice.answers(path));
  choice.heard(path);
  EXPECT_TRUE(choice.answers(path));
  EXPECT_FALSE(choice.answers(path)) << "each question is about what came since the last";
  EXPECT_TRUE(choice.hears(path)) << "the peer's question is not ours";
  EXPECT_TRUE(choice.doubt(path, now + 50ms));
  EXPECT_FALSE(choice.hears(path));
  choice.move(path);
  EXPECT_FALSE(choice.doubt(path, now + 1s)) << "it has moved";
}

TEST(CarrierChoice, forgets_only_paths_that_have_not_moved) {
  CarrierChoice choice;
  choice.move(path);
  for (std::size_t i = 0; i < 3 * CarrierChoice::max_paths; ++i) {
    rnic::Gid peer{7};
    peer[1] = static_cast<std::uint8_t>(i);
    peer[2] = static_cast<std::uint8_t>(i >> 8);
    (void)choice.asks({rnic::Gid{1}, peer}, Time{});
  }
  EXPECT_TRUE(choice.goes_by_stream(path));
}

TEST(CarrierSetting, is_what_the_words_say) {
  struct Row {
    const char* words;
    bool automatic;
    int port;  // 0: UDP alone; -1: refused
  };
  for (const Row& row : {Row{nullptr, false, 0},
                         {"", false, 0},
                         {"udp", false, 0},
                         {"tcp", false, 4791},
                         {"auto", true, 4791},
                         {"tcp:7000", false, 7000},
                         {"auto:7000", true, 7000},
                         {"udp:7000", false, -1},
                         {"tcp:", false, -1},
                         {"tcp:0", false, -1},
                         {"tcp:65536", false, -1},
                         {"tcp:70 ", false, -1},
                         {"TCP", false, -1},
                         {"on", false, -1}}) {
    const auto read = read_carrier(row.words);
    ASSERT_EQ(read.has_value(), row.port >= 0) << row.words;
    if (!read) continue;
    ASSERT_EQ(read->has_value(), row.port > 0) << row.words;
    if (!*read) continue;
    EXPECT_EQ((*read)->automatic, row.automatic) << row.words;
    EXPECT_EQ((*read)->port, row.port) << row.words;
  }
}

std::vector<std::byte> packet_to(std::uint32_t queue_pair, const wire::Mad* mad = nullptr) {
  wire::Packet packet;
  packet.bth.destination = queue_pair;
  packet.bth.opcode = mad != nullptr ? wire::opcode(wire::Service::ud, wire::Operation::send_only)
                                     : wire::opcode(wire::Service::rc, wire::Operation::send_only);
  std::array<std::byte, wire::longest_headers> headers{};
  const std::size_t used = wire::encode_headers(packet, mad != nullptr ? wire::mad_bytes : 0, headers);
  std::vector<std::byte> bytes(headers.begin(), headers.begin() + static_cast<std::ptrdiff_t>(used));
  if (mad != nullptr) {
    const auto encoded = wire::encode_mad(*mad);
    bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  }
  return bytes;
}

TEST(PacketTarget, is_the_process_of_a_queue_pair) {
  using link::StreamTarget;
  EXPECT_EQ(target_of(packet_to(5u << rnic::qp_index_bits | 77)), StreamTarget{.slot = 5});
  EXPECT_EQ(target_of(packet_to(0xffffff)), std::nullopt) << "a group";
  EXPECT_EQ(target_of(packet_to(77)), std::nullopt) << "nobody has slot 0";
  EXPECT_EQ(target_of(std::vector<std::byte>(7)), std::nullopt) << "cut short";
}

TEST(PacketTarget, of_a_sign_of_life_is_the_slot_it_is_for) {
  const auto mad = sign_of_life(9);
  auto packet = packet_to(wire::cm_qpn);
  EXPECT_FALSE(is_sign_of_life(packet));
  wire::CmRtu rtu;
  rtu.remote_id = 9u << communication_slot_shift;
  const wire::Mad message{.transaction = 0, .status = 0, .message = rtu};
  packet = packet_to(wire::cm_qpn, &message);
  EXPECT_FALSE(is_sign_of_life(packet));
  std::copy(mad.begin(), mad.end(), packet.end() - static_cast<std::ptrdiff_t>(mad.size()));
  EXPECT_TRUE(is_sign_of_life(packet));
  EXPECT_EQ(target_of(packet), link::StreamTarget{.slot = 9});
  EXPECT_FALSE(wire::parse_mad(mad)) << "nobody acts on it";
}

TEST(PacketTarget, is_whom_a_message_of_the_manager_answers) {
  using link::StreamTarget;
  constexpr std::uint32_t theirs = 9u << communication_slot_shift | 3;
  constexpr std::uint64_t service = wire::rdma_service_id(wire::port_space_tcp, 7174);
  const auto of = [](auto message) {
    const wire::Mad mad{.transaction = 0, .status = 0, .message = message};
    const auto packet = packet_to(wire::cm_qpn, &mad);
    EXPECT_TRUE(is_management(packet));
    return target_of(packet);
  };
  const StreamTarget listener{.slot = 0, .service = static_cast<std::uint32_t>(service)}, asker{.slot = 9};
  wire::CmReq req;
  req.service_id = service;
  req.local_id = theirs;
  EXPECT_EQ(of(req), listener);
  wire::CmSidrReq sidr;
  sidr.service_id = service;
  EXPECT_EQ(of(sidr), listener);
  wire::CmRep rep;
  rep.local_id = 1u << communication_slot_shift;
  rep.remote_id = theirs;
  EXPECT_EQ(of(rep), asker);
  wire::CmRtu rtu;
  rtu.remote_id = theirs;
  EXPECT_EQ(of(rtu), asker);
  wire::CmDreq dreq;
  dreq.remote_id = theirs;
  EXPECT_EQ(of(dreq), asker);
  wire::CmSidrRep found;
  found.request_id = theirs;
  EXPECT_EQ(of(found), asker);
  EXPECT_FALSE(is_management(packet_to(5u << rnic::qp_index_bits | 77)));
}

}  // namespace
}  // namespace weir::verbs

#include "faults/packet_faults.hpp"

#include <gtest/gtest.h>

#include "faults/language.hpp"
#include "packet_of.hpp"

namespace weir::faults {
namespace {

using wire::Operation;

constexpr std::uint32_t first_qpn = 0x8002, second_qpn = 0x8003, peer = 0x10002;
constexpr std::uint32_t sq_psn = 0xfffffe, rq_psn = 1000;

PacketFaults faults_of(std::string_view text) {
  PacketFaults faults(read_plan(text).value(), 100'000);
  faults.queue_pair_made(first_qpn);
  faults.queue_pair_made(second_qpn);
  for (const std::uint32_t qpn : {first_qpn, second_qpn}) {
    faults.first_psn(qpn, Direction::out, sq_psn);
    faults.first_psn(qpn, Direction::in, rq_psn);
  }
  return faults;
}

Verdict leaves(PacketFaults& faults, Operation operation, std::uint32_t psn, std::uint32_t qpn = first_qpn,
               std::uint8_t syndrome = 0, std::uint64_t now_ns = 0) {
  const Bytes bytes = packet_of(rc(operation), peer, psn & 0xffffff, syndrome);
  return faults.judge({Direction::out, qpn, bytes}, now_ns);
}
Verdict arrives(PacketFaults& faults, Operation operation, std::uint32_t psn, std::uint32_t qpn = first_qpn,
                std::uint8_t syndrome = 0) {
  const Bytes bytes = packet_of(rc(operation), qpn, psn & 0xffffff, syndrome);
  return faults.judge({Direction::in, 0, bytes}, 0);
}

TEST(PacketFaults, packets_of_a_gone_address_are_lost) {
  PacketFaults faults = faults_of("gid-gone gid=1 from=1us until=2us");
  const Bytes bytes = packet_of(rc(Operation::send_only), peer, sq_psn);
  const auto is_lost = [&](std::optional<std::uint64_t> gid, std::uint64_t now_ns) {
    return faults.judge({Direction::out, first_qpn, bytes, gid}, now_ns).drop;
  };
  EXPECT_TRUE(is_lost(1, 1500));
  EXPECT_FALSE(is_lost(0, 1500));
  EXPECT_FALSE(is_lost(std::nullopt, 1500));
  EXPECT_FALSE(is_lost(1, 500));
  EXPECT_FALSE(is_lost(1, 2000));
  EXPECT_EQ(faults.tallies()[0].fired, 1u);
}

TEST(PacketFaults, paused_port_sends_nothing_and_still_receives) {
  PacketFaults faults = faults_of("pause from=1us until=2us");
  const auto leaves_at = [&](std::uint64_t now_ns) {
    return leaves(faults, Operation::send_only, sq_psn, first_qpn, 0, now_ns).paused;
  };
  EXPECT_FALSE(leaves_at(500));
  EXPECT_TRUE(leaves_at(1500));
  EXPECT_FALSE(leaves_at(2000));
  const Bytes arriving = packet_of(rc(Operation::send_only), first_qpn, rq_psn);
  EXPECT_TRUE(faults.judge({Direction::in, 0, arriving}, 1500).is_untouched());
  EXPECT_EQ(faults.tallies()[0].fired, 1u);
}

TEST(PacketFaults, only_packets_with_a_payload_are_altered) {
  PacketFaults faults = faults_of("alter");
  EXPECT_FALSE(leaves(faults, Operation::send_only, sq_psn).alter) << "16 bytes: BTH and ICRC";
  EXPECT_FALSE(leaves(faults, Operation::acknowledge, sq_psn).alter);
  std::vector<std::byte> bytes(12 + 8 + 4);
  std::ranges::copy(packet_of(rc(Operation::send_only), peer, sq_psn), bytes.begin());
  EXPECT_TRUE(faults.judge({Direction::out, first_qpn, bytes}, 0).alter);
  EXPECT_EQ(faults.tallies()[0].fired, 1u);
}

struct Row {
  std::string_view fault;
  bool out;
  Operation operation;
  std::uint32_t psn;  // on the wire
  std::uint32_t qpn;
  std::uint8_t syndrome;
  bool hit;
};

TEST(PacketFaults, conditions_decide_which_packet_is_hit) {
  constexpr std::uint8_t ack = 0x1f, rnr = 0x2c, nak = 0x60;
  const Row rows[] = {
      {"drop", true, Operation::send_only, sq_psn, first_qpn, 0, true},
      {"drop", false, Operation::acknowledge, sq_psn, first_qpn, ack, true},
      {"drop qp=1", true, Operation::send_only, sq_psn, first_qpn, 0, true},
      {"drop qp=1", true, Operation::send_only, sq_psn, second_qpn, 0, false},
      {"drop qp=2", false, Operation::send_only, rq_psn, second_qpn, 0, true},
      {"drop qp=2..9", true, Operation::send_only, sq_psn, second_qpn, 0, true},
      {"drop qp=3", true, Operation::send_only, sq_psn, second_qpn, 0, false},
      // PSNs count from the first, across 2^24.
      {"drop psn=0", true, Operation::send_only, sq_psn, first_qpn, 0, true},
      {"drop psn=5", true, Operation::send_only, sq_psn + 5, first_qpn, 0, true},
      {"drop psn=5", true, Operation::send_only, sq_psn + 6, first_qpn, 0, false},
      {"drop psn=5", false, Operation::write_only, rq_psn + 5, first_qpn, 0, true},
      {"drop psn=5", false, Operation::write_only, sq_psn + 5, first_qpn, 0, false},
      // A response bears the PSN of its request, and psn= alone is about requests.
      {"drop psn=5", false, Operation::acknowledge, sq_psn + 5, first_qpn, ack, false},
      {"drop psn=5 opcode=ack", false, Operation::acknowledge, sq_psn + 5, first_qpn, ack, true},
      {"drop psn=5 opcode=ack", true, Operation::acknowledge, rq_psn + 5, first_qpn, ack, true},
      {"drop psn=5 opcode=read-response", false, Operation::read_response_middle, sq_psn + 5, first_qpn, 0,
       true},
      {"drop direction=out", true, Operation::send_only, sq_psn, first_qpn, 0, true},
      {"drop direction=out", false, Operation::send_only, rq_psn, first_qpn, 0, false},
      {"drop direction=in", false, Operation::send_only, rq_psn, first_qpn, 0, true},
      {"drop opcode=request", true, Operation::fetch_add, sq_psn, first_qpn, 0, true},
      {"drop opcode=request", true, Operation::acknowledge, rq_psn, first_qpn, ack, false},
      {"drop opcode=response", true, Operation::acknowledge, rq_psn, first_qpn, ack, true},
      {"drop opcode=response", true, Operation::atomic_acknowledge, rq_psn, first_qpn, 0, true},
      {"drop opcode=send", true, Operation::send_last_invalidate, sq_psn, first_qpn, 0, true},
      {"drop opcode=send", true, Operation::write_only, sq_psn, first_qpn, 0, false},
      {"drop opcode=write", true, Operation::write_only_imm, sq_psn, first_qpn, 0, true},
      {"drop opcode=read", true, Operation::read_request, sq_psn, first_qpn, 0, true},
      {"drop opcode=read", true, Operation::read_response_only, rq_psn, first_qpn, 0, false},
      {"drop opcode=atomic", true, Operation::atomic_write, sq_psn, first_qpn, 0, true},
      {"drop opcode=atomic-response", false, Operation::atomic_acknowledge, sq_psn, first_qpn, 0, true},
      {"drop opcode=ack", false, Operation::acknowledge, sq_psn, first_qpn, ack, true},
      {"drop opcode=ack", false, Operation::acknowledge, sq_psn, first_qpn, nak, false},
      {"drop opcode=nak", false, Operation::acknowledge, sq_psn, first_qpn, nak, true},
      {"drop opcode=nak", false, Operation::acknowledge, sq_psn, first_qpn, rnr, false},
      {"drop opcode=rnr-nak", false, Operation::acknowledge, sq_psn, first_qpn, rnr, true},
      // None of our queue pairs.
      {"drop", false, Operation::send_only, rq_psn, 0x8009, 0, false},
      {"drop qp=cm", true, Operation::send_only, sq_psn, first_qpn, 0, false},
  };
  for (const Row& row : rows) {
    PacketFaults faults = faults_of(row.fault);
    const Verdict verdict = row.out ? leaves(faults, row.operation, row.psn, row.qpn, row.syndrome)
                                    : arrives(faults, row.operation, row.psn, row.qpn, row.syndrome);
    EXPECT_EQ(verdict.drop, row.hit) << row.fault << ", " << name_of({.opcode = rc(row.operation)}) << " "
                                     << row.psn;
  }
}

// Which of twelve packets with PSNs 0 to 11 are hit, as letters.
std::string hits(PacketFaults& faults, std::uint32_t first = 0) {
  std::string text;
  for (std::uint32_t psn = first; psn < first + 12; ++psn)
    text += leaves(faults, Operation::send_only, sq_psn + psn).drop ? 'x' : '.';
  return text;
}

TEST(PacketFaults, counts_choose_among_the_packets_that_match) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"drop nth=3", "..x........."},           {"drop nth=3..5", "..xxx......."},
      {"drop every=4", "...x...x...x"},         {"drop every=4 times=2", "...x...x...."},
      {"drop times=2", "xx.........."},         {"drop psn=2..4", "..xxx......."},
      {"drop qp=1 opcode=ack", "............"}, {"drop psn=3..9 nth=2", "....x......."},
  };
  for (const auto& [text, expected] : rows) {
    PacketFaults faults = faults_of(text);
    EXPECT_EQ(hits(faults), expected) << text;
  }
}

TEST(PacketFaults, retransmission_passes_unless_times_says_more) {
  PacketFaults once = faults_of("drop psn=5"), thrice = faults_of("drop psn=5 times=3"),
               always = faults_of("drop psn=5 times=all");
  std::string of_once, of_thrice, of_always;
  for (int transmission = 0; transmission < 5; ++transmission) {
    of_once += leaves(once, Operation::send_only, sq_psn + 5).drop ? 'x' : '.';
    of_thrice += leaves(thrice, Operation::send_only, sq_psn + 5).drop ? 'x' : '.';
    of_always += leaves(always, Operation::send_only, sq_psn + 5).drop ? 'x' : '.';
  }
  EXPECT_EQ(of_once, "x....");
  EXPECT_EQ(of_thrice, "xxx..");
  EXPECT_EQ(of_always, "xxxxx");
}

TEST(PacketFaults, time_limits_when_a_fault_fires) {
  PacketFaults faults = faults_of("drop from=5us until=8us");
  const std::pair<std::uint64_t, bool> rows[] = {
      {4'999, false}, {5'000, true}, {7'999, true}, {8'000, false}};
  for (const auto& [now_ns, hit] : rows)
    EXPECT_EQ(leaves(faults, Operation::send_only, sq_psn, first_qpn, 0, now_ns).drop, hit) << now_ns;
}

TEST(PacketFaults, rate_hits_its_share_and_draws_retransmissions_anew) {
  PacketFaults faults = faults_of("seed 3\ndrop rate=10%");
  int first = 0, again = 0;
  for (std::uint32_t psn = 0; psn < 10'000; ++psn) {
    if (!leaves(faults, Operation::send_only, sq_psn + psn).drop) continue;
    ++first;
    again += leaves(faults, Operation::send_only, sq_psn + psn).drop;
  }
  EXPECT_NEAR(first, 1000, 100);  // 3.3 standard deviations; the seed is fixed
  EXPECT_NEAR(again, first / 10, 40);
}

TEST(PacketFaults, same_seed_hits_same_requests_whatever_else_passes) {
  PacketFaults one = faults_of("seed 9\ndrop rate=20%"), two = faults_of("seed 9\ndrop rate=20%"),
               other = faults_of("seed 10\ndrop rate=20%");
  std::string of_one, of_two, of_other;
  for (std::uint32_t psn = 0; psn < 200; ++psn) {
    of_one += leaves(one, Operation::send_only, sq_psn + psn).drop ? 'x' : '.';
    (void)arrives(two, Operation::acknowledge, sq_psn + psn / 3);  // acknowledgements come when they like
    of_two += leaves(two, Operation::send_only, sq_psn + psn).drop ? 'x' : '.';
    of_other += leaves(other, Operation::send_only, sq_psn + psn).drop ? 'x' : '.';
  }
  EXPECT_EQ(of_one, of_two);
  EXPECT_NE(of_one, of_other);
}

TEST(PacketFaults, each_act_has_its_verdict) {
  PacketFaults faults = faults_of("duplicate 2\ndelay 3us\nreorder 4\nmark\ncorrupt");
  const Verdict verdict = leaves(faults, Operation::send_only, sq_psn);
  EXPECT_EQ(verdict.copies, 2u);
  EXPECT_EQ(verdict.delay_ns, 3000u);
  EXPECT_EQ(verdict.overtaken_by, 4u);
  EXPECT_TRUE(verdict.mark);
  EXPECT_TRUE(verdict.corrupt);
  EXPECT_FALSE(verdict.drop);
}

TEST(PacketFaults, a_drop_ends_the_faults_of_a_packet) {
  PacketFaults faults = faults_of("drop nth=1\nduplicate");
  EXPECT_TRUE(leaves(faults, Operation::send_only, sq_psn).drop);
  EXPECT_EQ(faults.tallies()[1].met, 0u);
}

TEST(PacketFaults, reused_queue_pair_number_counts_anew) {
  PacketFaults faults = faults_of("drop qp=3 psn=0");
  EXPECT_FALSE(leaves(faults, Operation::send_only, sq_psn).drop);
  faults.queue_pair_made(first_qpn);
  EXPECT_TRUE(leaves(faults, Operation::send_only, 77).drop);  // its first packet says its first PSN
}

TEST(PacketFaults, management_packets_belong_to_no_queue_pair) {
  PacketFaults faults = faults_of("drop qp=cm");
  const Bytes bytes = packet_of(wire::opcode(wire::Service::ud, Operation::send_only), 1, 7);
  EXPECT_TRUE(faults.judge({Direction::out, 0, bytes}, 0).drop);
  EXPECT_TRUE(faults.judge({Direction::in, 0, bytes}, 0).drop);
}

TEST(PacketFaults, packets_too_short_for_headers_pass) {
  PacketFaults faults = faults_of("drop");
  const Bytes bytes = packet_of(0, first_qpn, 0);
  for (std::size_t length = 0; length < 12; ++length)
    EXPECT_FALSE(faults.judge({Direction::in, 0, std::span(bytes).first(length)}, 0).drop) << length;
}

}  // namespace
}  // namespace weir::faults

#include "faults/firing_report.hpp"

#include <gtest/gtest.h>

#include "faults/language.hpp"
#include "packet_of.hpp"

namespace weir::faults {
namespace {

constexpr std::uint32_t qpn = 0x8002;

CallFaults no_calls(const PacketFaults& faults) { return CallFaults(faults.plan()); }

PacketFaults after_four_sends(std::string_view text, std::size_t remembered = 10) {
  PacketFaults faults(read_plan(text).value(), remembered);
  faults.queue_pair_made(qpn);
  for (std::uint32_t psn = 100; psn < 104; ++psn) {
    const Bytes bytes = packet_of(rc(wire::Operation::send_only), 9, psn);
    (void)faults.judge({Direction::out, qpn, bytes}, psn * 1000);
  }
  return faults;
}

TEST(FaultReport, names_fired_packets_and_faults_that_never_fired) {
  const PacketFaults faults = after_four_sends("drop psn=2\ndrop qp=2 psn=0\ndrop nth=9\ndrop opcode=ack");
  EXPECT_EQ(report_for_people(faults, no_calls(faults), {"prog", 12}),
            "weir faults: prog (process 12): 1 of 4 faults fired; 4 packets left, 0 arrived\n"
            "  drop psn=2: fired 1 time\n"
            "    0.000102 s  QP 1 (0x8002)  PSN 2  SEND_ONLY, leaving, 16 bytes\n"
            "  drop qp=2 psn=0: never fired: the program made 1 queue pair\n"
            "  drop nth=9: never fired: 3 packets met its conditions, and none was chosen of them\n"
            "  drop opcode=ack: never fired: none of 4 packets met its conditions\n");
}

TEST(FaultReport, counts_firings_beyond_those_remembered) {
  const PacketFaults faults = after_four_sends("mark", 2);
  EXPECT_NE(report_for_people(faults, no_calls(faults), {"prog", 12})
                .find("PSN 1  SEND_ONLY, leaving, 16 bytes\n    and 2 more\n"),
            std::string::npos);
}

TEST(FaultReport, says_so_when_no_packet_passed) {
  const PacketFaults faults(read_plan("drop").value());
  EXPECT_NE(report_for_people(faults, no_calls(faults), {"prog", 12}).find("never fired: no packet passed"),
            std::string::npos);
}

TEST(FaultReport, names_refused_calls_and_what_begins_by_itself) {
  const Plan plan =
      read_plan("refuse ENOMEM call=ibv_post_send qp=1 nth=2\ndown from=1us until=2us\nkill from=1s").value();
  PacketFaults packets(plan);
  packets.queue_pair_made(qpn);
  CallFaults calls(plan);
  for (const std::uint64_t now_ns : {5000u, 6000u}) (void)calls.judge(Call::post_send, 1, now_ns);
  EXPECT_EQ(report_for_people(packets, calls, {"prog", 12, 1'500}),
            "weir faults: prog (process 12): 2 of 3 faults fired; 0 packets left, 0 arrived\n"
            "  refuse ENOMEM call=ibv_post_send qp=1 nth=2: fired 1 time\n"
            "    0.000006 s  ibv_post_send 2 of QP 1\n"
            "  down from=1us until=2us: fired; 0 packets lost\n"
            "  kill from=1s: never fired: the program ended before\n");
}

}  // namespace
}  // namespace weir::faults

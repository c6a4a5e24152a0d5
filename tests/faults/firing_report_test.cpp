#include "faults/firing_report.hpp"

#include <gtest/gtest.h>

#include "faults/language.hpp"
#include "packet_of.hpp"

namespace weir::faults {
namespace {

constexpr std::uint32_t qpn = 0x8002;

std::string report_of(const PacketFaults& packets, const Program& program) {
  const CallFaults calls(packets.plan());
  const ReceiveFaults receives(packets.plan());
  return report_for_people({packets, calls, receives}, program);
}

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
  EXPECT_EQ(report_of(faults, {"prog", 12}),
            "weir faults: prog (process 12): 1 of 4 faults fired; 4 packets left, 0 arrived\n"
            "  drop psn=2: fired 1 time\n"
            "    0.000102 s  QP 1 (0x8002)  PSN 2  SEND_ONLY, leaving, 16 bytes\n"
            "  drop qp=2 psn=0: never fired: the program made 1 queue pair\n"
            "  drop nth=9: never fired: 3 packets met its conditions, and none was chosen of them\n"
            "  drop opcode=ack: never fired: none of 4 packets met its conditions\n");
}

TEST(FaultReport, counts_firings_beyond_those_remembered) {
  const PacketFaults faults = after_four_sends("mark", 2);
  EXPECT_NE(report_of(faults, {"prog", 12}).find("PSN 1  SEND_ONLY, leaving, 16 bytes\n    and 2 more\n"),
            std::string::npos);
}

TEST(FaultReport, says_so_when_no_packet_passed) {
  const PacketFaults faults(read_plan("drop").value());
  EXPECT_NE(report_of(faults, {"prog", 12}).find("never fired: no packet passed"), std::string::npos);
}

TEST(FaultReport, names_refused_calls_and_what_begins_by_itself) {
  const Plan plan =
      read_plan("refuse ENOMEM call=ibv_post_send qp=1 nth=2\ndown from=1us until=2us\nkill from=1s").value();
  PacketFaults packets(plan);
  packets.queue_pair_made(qpn);
  CallFaults calls(plan);
  for (const std::uint64_t now_ns : {5000u, 6000u}) (void)calls.judge(Call::post_send, 1, now_ns);
  const ReceiveFaults receives(plan);
  EXPECT_EQ(report_for_people({packets, calls, receives}, {"prog", 12, 1'500}),
            "weir faults: prog (process 12): 2 of 3 faults fired; 0 packets left, 0 arrived\n"
            "  refuse ENOMEM call=ibv_post_send qp=1 nth=2: fired 1 time\n"
            "    0.000006 s  ibv_post_send 2 of QP 1\n"
            "  down from=1us until=2us: fired; 0 packets lost\n"
            "  kill from=1s: never fired: the program ended before\n");
}

TEST(FaultReport, names_queue_pairs_in_error) {
  const PacketFaults packets(read_plan("qp-error nth=2; qp-error from=1us; qp-error from=9s").value());
  CallFaults calls(packets.plan());
  for (const std::uint64_t now_ns : {5000u, 6000u}) (void)calls.judge(Call::polled, 1, now_ns);
  calls.fired(1, 2, 7000);
  const ReceiveFaults receives(packets.plan());
  EXPECT_NE(report_for_people({packets, calls, receives}, {"prog", 12, 10'000})
                .find("  qp-error nth=2: fired 1 time\n    0.000006 s  completion 2 of QP 1\n"
                      "  qp-error from=1us: fired 1 time\n    0.000007 s  QP 2\n"
                      "  qp-error from=9s: never fired: it met no queue pair, or the program ended before\n"),
            std::string::npos);
}

TEST(FaultReport, names_messages_that_found_no_receive) {
  const PacketFaults packets(read_plan("rnr 2ms qp=1 nth=3\nrnr qp=2").value());
  const CallFaults calls(packets.plan());
  ReceiveFaults receives(packets.plan());
  (void)receives.refused(1, 3, 5000);
  EXPECT_NE(report_for_people({packets, calls, receives}, {"prog", 12})
                .find("  rnr 2ms qp=1 nth=3: fired 1 time\n    0.000005 s  message 3 to QP 1\n"
                      "  rnr qp=2: never fired: the program made 0 queue pairs\n"),
            std::string::npos);
}

TEST(FaultReport, json_has_the_same_on_one_line) {
  const PacketFaults packets = after_four_sends("drop psn=2\ndrop qp=2");
  const CallFaults calls(packets.plan());
  const ReceiveFaults receives(packets.plan());
  EXPECT_EQ(report_as_json({packets, calls, receives}, {"a\"b", 12}),
            "{\"program\": \"a\\\"b\", \"process\": 12, \"packets_out\": 4, \"packets_in\": 0, \"faults\": ["
            "{\"line\": 1, \"fault\": \"drop psn=2\", \"has_fired\": true, \"fired\": 1, \"firings\": "
            "[{\"seconds\": 0.000102, \"qp\": 1, \"qpn\": 32770, \"psn\": 2, \"packet\": \"SEND_ONLY\", "
            "\"direction\": \"out\", \"bytes\": 16}]}, "
            "{\"line\": 2, \"fault\": \"drop qp=2\", \"has_fired\": false, \"fired\": 0, \"why_never\": "
            "\"the program made 1 queue pair\", \"firings\": []}]}\n");
}

TEST(FaultReport, annotations_warn_of_faults_that_never_fired) {
  const PacketFaults packets = after_four_sends("drop psn=2\ndrop qp=2 rate=1%");
  const CallFaults calls(packets.plan());
  const ReceiveFaults receives(packets.plan());
  EXPECT_EQ(report_as_annotations({packets, calls, receives}, {"prog", 12}, "a:b"),
            "::notice file=a%3Ab,line=1,title=weir faults in prog::drop psn=2: fired 1 time%0A"
            "    0.000102 s  QP 1 (0x8002)  PSN 2  SEND_ONLY, leaving, 16 bytes\n"
            "::warning file=a%3Ab,line=2,title=weir faults in prog::drop qp=2 rate=1%25: never fired: "
            "the program made 1 queue pair\n");
}

}  // namespace
}  // namespace weir::faults

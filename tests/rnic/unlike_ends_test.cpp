// Two ends that were told different things, and receives whose pieces are not all good: one list of cases,
// each answered alike by memory and by packets.
#include <tuple>

#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

struct Ends {
  QpType type = QpType::rc;
  std::uint32_t sends_from = 100, expects = 100;  // a's first PSN, as a and as b were told
  std::uint32_t a_mtu = 1024, b_mtu = 1024;
};
// The bytes of each of a receive's two pieces; a bad one has a key of no region.
struct Pieces {
  std::uint32_t first = 4096, second = 0;
  enum class Bad : std::uint8_t { none, first, second, runs_past_its_region } bad = Bad::none;
};
struct Case {
  const char* name;
  Ends ends;
  std::uint32_t length = 0;
  Pieces receive{};
  WcStatus sent = WcStatus::success;
  std::optional<WcStatus> received = WcStatus::success;  // nullopt: nothing, as if no message had come
};

const Case cases[] = {
    {"first_psns_alike", {.sends_from = 5, .expects = 5}, 11},
    {"first_psns_alike_in_24_bits", {.sends_from = 0x1000005, .expects = 5}, 11},
    {"peer_expects_a_later_psn", {.sends_from = 5, .expects = 10}, 11, {}, WcStatus::retry_exc_err, {}},
    {"peer_expects_an_earlier_psn", {.sends_from = 10, .expects = 5}, 11, {}, WcStatus::retry_exc_err, {}},
    {"uc_takes_any_first_psn", {.type = QpType::uc, .sends_from = 10, .expects = 5}, 11},

    {"shorter_mtu_sends_more_than_it",
     {.a_mtu = 256, .b_mtu = 1024},
     2000,
     {},
     WcStatus::rem_inv_req_err,
     WcStatus::wr_flush_err},
    {"longer_mtu_sends_more_than_the_peers",
     {.a_mtu = 1024, .b_mtu = 256},
     2000,
     {},
     WcStatus::rem_inv_req_err,
     WcStatus::wr_flush_err},
    {"longer_mtu_sends_one_packet_above_the_peers",
     {.a_mtu = 1024, .b_mtu = 256},
     300,
     {},
     WcStatus::rem_inv_req_err,
     WcStatus::wr_flush_err},
    {"unlike_mtus_send_what_fits_both", {.a_mtu = 256, .b_mtu = 1024}, 200},
    {"uc_with_unlike_mtus_loses_what_fits_one",
     {.type = QpType::uc, .a_mtu = 1024, .b_mtu = 256},
     2000,
     {},
     WcStatus::success,
     {}},

    {"message_ends_before_a_bad_piece", {}, 64, {64, 64, Pieces::Bad::second}},
    {"message_reaches_a_bad_piece",
     {},
     65,
     {64, 64, Pieces::Bad::second},
     WcStatus::rem_op_err,
     WcStatus::loc_prot_err},
    {"empty_message_meets_a_bad_piece", {}, 0, {64, 0, Pieces::Bad::first}},
    {"message_fits_where_its_piece_does_not", {}, 3, {64, 0, Pieces::Bad::runs_past_its_region}},
    {"message_passes_the_end_of_its_region",
     {},
     40,
     {64, 0, Pieces::Bad::runs_past_its_region},
     WcStatus::rem_op_err,
     WcStatus::loc_prot_err},
};

class UnlikeEnds : public TwoHosts, public testing::WithParamInterface<std::tuple<Case, Via>> {
 protected:
  static const Case& now() { return std::get<Case>(GetParam()); }

  void connect_ends() {
    const Ends& ends = now().ends;
    for (auto [end, nic] : {std::pair{&a, &a_nic}, std::pair{&b, &b_nic}})
      *end =
          std::make_unique<Endpoint>(*nic, EndpointOptions{.type = ends.type, .timeout = 10, .retry_cnt = 1});
    Path& from_a = a->attributes().path;
    Path& from_b = b->attributes().path;
    if (std::get<Via>(GetParam()) == Via::packets) {
      from_a = path_from_a();
      from_b = path_from_b();
    }
    from_a.mtu_bytes = ends.a_mtu;
    from_a.send_psn = ends.sends_from;
    from_b.mtu_bytes = ends.b_mtu;
    from_b.receive_psn = ends.expects;
    from_a.receive_psn = from_b.send_psn = 77;
    connect(*a, *b);
  }

  std::vector<Sge> receive_into(const Memory& to) const {
    const Pieces& pieces = now().receive;
    const std::size_t before_its_end = 32;
    std::vector<Sge> sges{to.sge(0, pieces.first)};
    if (pieces.second != 0) sges.push_back(to.sge(pieces.first, pieces.second));
    if (pieces.bad == Pieces::Bad::runs_past_its_region)
      sges[0].addr = to.addr() + to.size() - before_its_end;
    if (pieces.bad == Pieces::Bad::first) sges[0].lkey ^= 1;
    if (pieces.bad == Pieces::Bad::second) sges[1].lkey ^= 1;
    return sges;
  }
};

INSTANTIATE_TEST_SUITE_P(
    By, UnlikeEnds, testing::Combine(testing::ValuesIn(cases), testing::Values(Via::same_host, Via::packets)),
    [](const auto& param_info) {
      return std::string(std::get<Via>(param_info.param) == Via::packets ? "packets_" : "memory_") +
             std::get<Case>(param_info.param).name;
    });

TEST_P(UnlikeEnds, send_ends_as_on_a_wire) {
  connect_ends();
  Memory from(a_nic, 4096), to(b_nic, 4096);
  from.fill(1);
  ASSERT_EQ(b->recv(1, receive_into(to)), PostResult::ok);
  ASSERT_EQ(a->send(2, from.sge(0, now().length)), PostResult::ok);

  std::optional<WorkCompletion> sent, received;
  const bool comes = now().received.has_value();
  carry_until([&] {
    if (!sent) sent = a->poll_send();
    if (!received) received = b->poll_recv();
    return sent && received.has_value() == comes;
  });

  EXPECT_TRUE(completed(sent, 2, now().sent));
  if (!comes) {
    EXPECT_FALSE(received);
    return;
  }
  EXPECT_TRUE(completed(received, 1, *now().received));
  if (*now().received == WcStatus::success) {
    EXPECT_EQ(received->byte_len, now().length);
  }
}

}  // namespace
}  // namespace weir::rnic::test

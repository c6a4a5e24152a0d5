// An access that the responder refuses, on one host and over packets: what both ends' completions and the
// target's events say, and that nothing moves.
#include "errors.hpp"
#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

struct RemoteFault {
  const char* name;
  SendOpcode opcode;
  std::uint32_t region_access;
  std::uint32_t qp_access;
  std::int64_t addr_offset;
  std::uint32_t length;
  std::uint32_t rkey_change;
  std::uint32_t domain;
  WcStatus status = WcStatus::rem_access_err;
};
constexpr std::uint32_t both = access::remote_write | access::remote_read;
constexpr auto op_write = SendOpcode::rdma_write;
constexpr auto op_imm = SendOpcode::rdma_write_with_imm;
constexpr auto op_read = SendOpcode::rdma_read;

constexpr RemoteFault faults[] = {
    {"write_wrong_rkey", op_write, all_access, both, 0, 64, 1, pd},
    {"imm_wrong_rkey", op_imm, all_access, both, 0, 64, 1, pd},
    {"read_wrong_rkey", op_read, all_access, both, 0, 64, 1, pd},
    {"write_region_without_remote_write", op_write, access::local_write | access::remote_read, both, 0, 64, 0,
     pd},
    {"imm_region_without_remote_write", op_imm, access::local_write | access::remote_read, both, 0, 64, 0,
     pd},
    {"read_region_without_remote_read", op_read, access::local_write | access::remote_write, both, 0, 64, 0,
     pd},
    {"write_qp_without_remote_write", op_write, all_access, access::remote_read, 0, 64, 0, pd,
     WcStatus::rem_inv_req_err},
    {"imm_qp_without_remote_write", op_imm, all_access, access::remote_read, 0, 64, 0, pd,
     WcStatus::rem_inv_req_err},
    {"read_qp_without_remote_read", op_read, all_access, access::remote_write, 0, 64, 0, pd,
     WcStatus::rem_inv_req_err},
    {"write_other_domain", op_write, all_access, both, 0, 64, 0, pd + 1},
    {"read_other_domain", op_read, all_access, both, 0, 64, 0, pd + 1},
    {"write_one_byte_too_long", op_write, all_access, both, 0, 65, 0, pd},
    {"imm_one_byte_too_long", op_imm, all_access, both, 1, 64, 0, pd},
    {"read_one_byte_too_long", op_read, all_access, both, 0, 65, 0, pd},
    {"write_before_the_start", op_write, all_access, both, -1, 8, 0, pd},
    {"read_behind_the_end", op_read, all_access, both, 64, 1, 0, pd},
};

enum class Way : std::uint8_t { one_host, packets };

class RefusedAccess : public TwoHosts, public testing::WithParamInterface<std::tuple<Way, RemoteFault>> {
 protected:
  void connect_ends(const EndpointOptions& of_a, const EndpointOptions& of_b) {
    if (std::get<Way>(GetParam()) == Way::one_host) return connect_pair(of_a, of_b);
    connect_hosts(of_a, of_b);
  }
};
INSTANTIATE_TEST_SUITE_P(Fault, RefusedAccess,
                         testing::Combine(testing::Values(Way::one_host, Way::packets),
                                          testing::ValuesIn(faults)),
                         [](const auto& row) {
                           const char* const way =
                               std::get<Way>(row.param) == Way::one_host ? "" : "_over_packets";
                           return std::get<RemoteFault>(row.param).name + std::string(way);
                         });

TEST_P(RefusedAccess, completes_with_its_error_and_moves_nothing) {
  const RemoteFault& fault = std::get<RemoteFault>(GetParam());
  connect_ends({}, {.qp_access = fault.qp_access});
  Memory local(a_nic, 128);
  Memory target(b_nic, 64, fault.region_access, Reach::copied, fault.domain);
  Memory receive(b_nic, 64);
  target.fill(1);
  local.fill(2);
  const auto target_before = target.part(0, 64), local_before = local.part(0, 128);
  ASSERT_EQ(b->recv(1, {receive.all()}), PostResult::ok);
  ASSERT_EQ(a->post({.wr_id = 2,
                     .opcode = fault.opcode,
                     .flags = send_flag::signaled,
                     .remote_addr = target.addr() + static_cast<std::uint64_t>(fault.addr_offset),
                     .rkey = target.key() ^ fault.rkey_change},
                    {local.sge(0, fault.length)}),
            PostResult::ok);
  carry();
  EXPECT_TRUE(completed(a->poll_send(), 2, fault.status));
  EXPECT_EQ(target.part(0, 64), target_before);
  EXPECT_EQ(local.part(0, 128), local_before);
  EXPECT_EQ(b->qp().state(), QpState::err) << "a responder that sends this NAK goes to the error state";
  EXPECT_TRUE(completed(b->poll_recv(), 1, WcStatus::wr_flush_err));
  const auto events = b_nic.async_events();
  ASSERT_EQ(events.size(), 1u);
  const bool of_access = fault.status == WcStatus::rem_access_err;
  EXPECT_EQ(events[0].event, of_access ? AsyncEvent::qp_access_error : AsyncEvent::qp_request_error);
  EXPECT_EQ(events[0].qp, &b->qp());
  expect_flushes_sends(*a, local.all());
}

// What is asked for before the refused request is answered, whatever is lost.
class BeforeRefusal : public TwoHosts, public testing::WithParamInterface<Way> {};
INSTANTIATE_TEST_SUITE_P(On, BeforeRefusal, testing::Values(Way::one_host, Way::packets),
                         [](const auto& row) { return row.param == Way::one_host ? "one_host" : "packets"; });

TEST_P(BeforeRefusal, a_read_completes_with_its_data) {
  for (int lost = -1; lost < 24; ++lost) {
    SCOPED_TRACE("lost: packet " + std::to_string(lost));
    GetParam() == Way::one_host ? connect_pair() : connect_hosts();
    Memory local(a_nic, 20'000, all_access, Reach::mapped), target(b_nic, 20'000, all_access, Reach::mapped);
    target.fill(3);
    int packets = 0;
    drop = [&](const OnWire&) { return packets++ == lost; };
    ASSERT_EQ(a->read(1, local.all(), target.addr(), target.key()), PostResult::ok);
    ASSERT_EQ(a->write(2, local.sge(0, 8), target.addr(), target.key() ^ 0x55), PostResult::ok);
    ASSERT_EQ(a->write(3, local.sge(0, 8), target.addr(), target.key()), PostResult::ok);
    ASSERT_TRUE(carry_until([&] { return a->qp().state() == QpState::err; }));
    EXPECT_TRUE(completed(a->poll_send(), 1));
    EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::rem_access_err));
    EXPECT_TRUE(completed(a->poll_send(), 3, WcStatus::wr_flush_err));
    EXPECT_EQ(local.part(0, local.size()), target.part(0, target.size()));
    drop = {};
    wire.clear();
  }
}

}  // namespace
}  // namespace weir::rnic::test

// Completion errors: the work completion that each fault causes at the requester and at the responder (IBA
// 9.9, 10.3.1; ibv_poll_cq(3)).
#include "errors.hpp"

namespace weir::rnic::test {
namespace {

// ---- local protection

struct LocalFault {
  const char* name;
  std::function<Sge(Memory& good, Memory& no_write, Memory& other_domain, Memory& dead)> sge;
  SendOpcode opcode = SendOpcode::send;
};
class LocalProtection : public Errors, public testing::WithParamInterface<LocalFault> {};
INSTANTIATE_TEST_SUITE_P(
    Fault, LocalProtection,
    testing::Values(
        LocalFault{"unknown_lkey",
                   [](Memory& m, Memory&, Memory&, Memory&) { return Sge{m.addr(), 8, m.key() ^ 1}; }},
        LocalFault{"lkey_zero", [](Memory& m, Memory&, Memory&, Memory&) { return Sge{m.addr(), 8, 0}; }},
        LocalFault{"one_byte_too_long", [](Memory& m, Memory&, Memory&, Memory&) { return m.sge(0, 65); }},
        LocalFault{"behind_the_end", [](Memory& m, Memory&, Memory&, Memory&) { return m.sge(64, 1); }},
        LocalFault{"before_the_start",
                   [](Memory& m, Memory&, Memory&, Memory&) { return Sge{m.addr() - 1, 8, m.key()}; }},
        LocalFault{"wrapping",
                   [](Memory& m, Memory&, Memory&, Memory&) { return Sge{~0ull - 3, 8, m.key()}; }},
        LocalFault{"other_domain", [](Memory&, Memory&, Memory& m, Memory&) { return m.all(); }},
        LocalFault{"deregistered", [](Memory&, Memory&, Memory&, Memory& m) { return m.all(); }},
        LocalFault{"read_into_memory_without_local_write",
                   [](Memory&, Memory& m, Memory&, Memory&) { return m.all(); }, SendOpcode::rdma_read},
        LocalFault{"write_from_unknown_lkey",
                   [](Memory& m, Memory&, Memory&, Memory&) { return Sge{m.addr(), 8, m.key() + 256}; },
                   SendOpcode::rdma_write}),
    [](const auto& param_info) { return param_info.param.name; });

TEST_P(LocalProtection, completes_with_local_protection_error_and_moves_nothing) {
  connect_pair();
  Memory good(a_nic, 64), no_write(a_nic, 64, 0), other(a_nic, 64, all_access, Reach::copied, pd + 1),
      dead(a_nic, 64), target(b_nic, 64);
  dead.deregister();
  good.fill(1);
  ASSERT_EQ(b->recv(1, {target.all()}), PostResult::ok);
  ASSERT_EQ(a->post({.wr_id = 2,
                     .opcode = GetParam().opcode,
                     .flags = 0,  // an error completes also when unsignalled
                     .remote_addr = target.addr(),
                     .rkey = target.key()},
                    {GetParam().sge(good, no_write, other, dead)}),
            PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::loc_prot_err));
  EXPECT_EQ(target.part(0, 64), std::vector<std::byte>(64));
  settle();
  EXPECT_EQ(b->qp().state(), QpState::rts) << "the responder never heard of it";
  EXPECT_FALSE(b->poll_recv());
  expect_flushes_sends(*a, good.all());
}

TEST_F(Errors, sending_from_memory_without_local_write_is_allowed) {
  connect_pair();
  Memory from(a_nic, 8, 0), to(b_nic, 8);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1));
}

// ---- remote access

TEST_F(Errors, an_empty_write_or_read_needs_no_valid_rkey) {
  connect_pair();
  Memory local(a_nic, 8);
  ASSERT_EQ(a->write(1, local.sge(0, 0), 0xdead, 0xbeef), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1));
  ASSERT_EQ(a->read(2, local.sge(0, 0), 0xdead, 0xbeef), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2));
}

TEST_F(Errors, an_rkey_is_refused_after_deregistration_and_when_its_entry_is_used_again) {
  connect_pair();
  Memory local(a_nic, 64), target(b_nic, 64);
  ASSERT_EQ(a->write(1, local.all(), target.addr(), target.key()), PostResult::ok);
  ASSERT_TRUE(completed(a->poll_send(), 1));
  target.deregister();
  ASSERT_EQ(a->write(2, local.all(), target.addr(), target.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::rem_access_err));
}

TEST_F(Errors, rights_taken_by_update_are_refused_from_then_on) {
  connect_pair();
  Memory local(a_nic, 64), target(b_nic, 64);
  b_nic.adapter().table().update(target.key(), access::local_write, pd);
  b_nic.adapter().drain_initiators(target.key());
  ASSERT_EQ(a->write(2, local.all(), target.addr(), target.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::rem_access_err));
}

// ---- receives that do not fit

class TooLong : public Errors, public testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, TooLong, testing::Values(1, 37, 4097, 8193, 100'000));

TEST_P(TooLong, a_send_longer_than_its_receive_is_an_invalid_request) {
  connect_pair();
  const std::size_t size = GetParam();
  Memory from(a_nic, size), to(b_nic, size);
  from.fill(1);
  ASSERT_EQ(b->recv(1, {to.sge(0, size - 1)}), PostResult::ok);
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->send(3, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 3, WcStatus::rem_inv_req_err));
  settle();
  EXPECT_TRUE(completed(b->poll_recv(), 1, WcStatus::loc_len_err));
  EXPECT_TRUE(completed(b->poll_recv(), 2, WcStatus::wr_flush_err));
  EXPECT_EQ(to.data()[size - 1], std::byte{0}) << "wrote behind the receive";
  EXPECT_EQ(b->qp().state(), QpState::err);
  expect_flushes_sends(*a, from.all());
}

struct BadReceive {
  const char* name;
  std::function<Sge(Memory& good, Memory& no_write, Memory& other_domain, Memory& dead)> sge;
};
class BadReceiveBuffer : public Errors, public testing::WithParamInterface<BadReceive> {};
INSTANTIATE_TEST_SUITE_P(
    Fault, BadReceiveBuffer,
    testing::Values(
        BadReceive{"unknown_lkey",
                   [](Memory& m, Memory&, Memory&, Memory&) { return Sge{m.addr(), 64, m.key() ^ 1}; }},
        BadReceive{"lkey_zero", [](Memory& m, Memory&, Memory&, Memory&) { return Sge{m.addr(), 64, 0}; }},
        BadReceive{"too_long", [](Memory& m, Memory&, Memory&, Memory&) { return m.sge(32, 64); }},
        BadReceive{"without_local_write", [](Memory&, Memory& m, Memory&, Memory&) { return m.all(); }},
        BadReceive{"other_domain", [](Memory&, Memory&, Memory& m, Memory&) { return m.all(); }},
        BadReceive{"deregistered", [](Memory&, Memory&, Memory&, Memory& m) { return m.all(); }}),
    [](const auto& param_info) { return param_info.param.name; });

TEST_P(BadReceiveBuffer, is_the_responders_protection_error_and_the_requesters_operational_error) {
  connect_pair();
  Memory from(a_nic, 48), good(b_nic, 64), no_write(b_nic, 64, 0),
      other(b_nic, 64, all_access, Reach::copied, pd + 1), dead(b_nic, 64);
  from.fill(1);
  dead.deregister();
  ASSERT_EQ(b->recv(1, {GetParam().sge(good, no_write, other, dead)}), PostResult::ok);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::rem_op_err));
  settle();
  EXPECT_TRUE(completed(b->poll_recv(), 1, WcStatus::loc_prot_err));
  EXPECT_EQ(b->qp().state(), QpState::err);
}

TEST_F(Errors, memory_that_is_gone_at_the_target_is_an_operational_error) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  host.on_copy = [] { return Peer::Transfer::fault; };
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::rem_op_err));
}

}  // namespace
}  // namespace weir::rnic::test

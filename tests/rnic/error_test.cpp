// Completion errors: which work completion each fault gives at the requester and at the responder, and what
// follows (IBA 9.9, 10.3.1; ibv_poll_cq(3)).
#include <sched.h>

#include <thread>

#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

class Errors : public TwoNics {
 protected:
  // After an error both further work requests and what was behind it are flushed.
  static void expect_flushes_sends(Endpoint& e, const Sge& sge) {
    EXPECT_EQ(e.qp().state(), QpState::err);
    ASSERT_EQ(e.send(99, sge, 0), PostResult::ok);
    EXPECT_TRUE(completed(e.poll_send(), 99, WcStatus::wr_flush_err));
  }
};

// ---- local protection
// -----------------------------------------------------------------------------------------

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
// --------------------------------------------------------------------------------------------

struct RemoteFault {
  const char* name;
  SendOpcode opcode;
  std::uint32_t region_access;
  std::uint32_t qp_access;
  std::int64_t addr_offset;
  std::uint32_t length;
  std::uint32_t rkey_change;
  std::uint32_t domain;
};
constexpr std::uint32_t both = access::remote_write | access::remote_read;
constexpr auto op_write = SendOpcode::rdma_write;
constexpr auto op_imm = SendOpcode::rdma_write_with_imm;
constexpr auto op_read = SendOpcode::rdma_read;

class RemoteAccess : public Errors, public testing::WithParamInterface<RemoteFault> {};
INSTANTIATE_TEST_SUITE_P(
    Fault, RemoteAccess,
    testing::Values(
        RemoteFault{"write_wrong_rkey", op_write, all_access, both, 0, 64, 1, pd},
        RemoteFault{"imm_wrong_rkey", op_imm, all_access, both, 0, 64, 1, pd},
        RemoteFault{"read_wrong_rkey", op_read, all_access, both, 0, 64, 1, pd},
        RemoteFault{"write_region_without_remote_write", op_write, access::local_write | access::remote_read,
                    both, 0, 64, 0, pd},
        RemoteFault{"imm_region_without_remote_write", op_imm, access::local_write | access::remote_read,
                    both, 0, 64, 0, pd},
        RemoteFault{"read_region_without_remote_read", op_read, access::local_write | access::remote_write,
                    both, 0, 64, 0, pd},
        RemoteFault{"write_qp_without_remote_write", op_write, all_access, access::remote_read, 0, 64, 0, pd},
        RemoteFault{"imm_qp_without_remote_write", op_imm, all_access, access::remote_read, 0, 64, 0, pd},
        RemoteFault{"read_qp_without_remote_read", op_read, all_access, access::remote_write, 0, 64, 0, pd},
        RemoteFault{"write_other_domain", op_write, all_access, both, 0, 64, 0, pd + 1},
        RemoteFault{"read_other_domain", op_read, all_access, both, 0, 64, 0, pd + 1},
        RemoteFault{"write_one_byte_too_long", op_write, all_access, both, 0, 65, 0, pd},
        RemoteFault{"imm_one_byte_too_long", op_imm, all_access, both, 1, 64, 0, pd},
        RemoteFault{"read_one_byte_too_long", op_read, all_access, both, 0, 65, 0, pd},
        RemoteFault{"write_before_the_start", op_write, all_access, both, -1, 8, 0, pd},
        RemoteFault{"read_behind_the_end", op_read, all_access, both, 64, 1, 0, pd}),
    [](const auto& param_info) { return param_info.param.name; });

TEST_P(RemoteAccess, completes_with_remote_access_error_and_moves_nothing) {
  const RemoteFault& fault = GetParam();
  connect_pair({}, {.qp_access = fault.qp_access});
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
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::rem_access_err));
  EXPECT_EQ(target.part(0, 64), target_before);
  EXPECT_EQ(local.part(0, 128), local_before);
  settle();
  EXPECT_EQ(b->qp().state(), QpState::err) << "a responder that sends this NAK goes to the error state";
  EXPECT_TRUE(completed(b->poll_recv(), 1, WcStatus::wr_flush_err));
  const auto events = b_nic.async_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event, AsyncEvent::qp_fatal);
  EXPECT_EQ(events[0].qp, &b->qp());
  expect_flushes_sends(*a, local.all());
}

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
  b_nic.adapter().drain_initiators();
  ASSERT_EQ(a->write(2, local.all(), target.addr(), target.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::rem_access_err));
}

// ---- receives that do not fit
// ---------------------------------------------------------------------------------

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
        BadReceive{"too_long", [](Memory& m, Memory&, Memory&, Memory&) { return m.sge(0, 65); }},
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

// ---- receiver not ready
// ---------------------------------------------------------------------------------------

// The encoded timer of the table is 0.64 ms (IBA table 45, code 12).
constexpr std::uint8_t timer_640_us = 12;
constexpr std::uint64_t timer_ns = 640'000;

class RnrRetry : public Errors, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Count, RnrRetry, testing::Range(1, 7));

TEST_P(RnrRetry, fails_when_the_retries_are_used_up_and_not_before) {
  const auto count = static_cast<std::uint8_t>(GetParam());
  connect_pair({.rnr_retry = count}, {.min_rnr_timer = timer_640_us});
  Memory from(a_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  host.advance(timer_ns * count - 1000);
  EXPECT_FALSE(a->poll_send());
  host.advance(2000);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::rnr_retry_exc_err));
  settle();
  EXPECT_EQ(b->qp().state(), QpState::rts) << "RNR is the requester's failure alone";
  expect_flushes_sends(*a, from.all());
}

TEST_P(RnrRetry, delivers_when_a_receive_comes_in_time) {
  const auto count = static_cast<std::uint8_t>(GetParam());
  connect_pair({.rnr_retry = count}, {.min_rnr_timer = timer_640_us});
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  host.advance(timer_ns * count - 1000);
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  settle();
  EXPECT_TRUE(completed(b->poll_recv(), 2))
      << "the post must finish the parked send, without any poll of the sender";
  EXPECT_TRUE(completed(a->poll_send(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_F(Errors, rnr_retry_0_fails_at_once) {
  connect_pair({.rnr_retry = 0});
  Memory from(a_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::rnr_retry_exc_err));
}

TEST_F(Errors, rnr_retry_7_waits_for_ever) {
  connect_pair({.rnr_retry = 7}, {.min_rnr_timer = 1});
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  for (int i = 0; i < 100; ++i) {
    host.advance(1'000'000'000'000);
    a_nic.adapter().service();
    ASSERT_FALSE(a->poll_send());
  }
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  settle();
  EXPECT_TRUE(completed(b->poll_recv(), 2));
  EXPECT_TRUE(completed(a->poll_send(), 1));
}

TEST_F(Errors, sends_behind_one_that_waits_wait_too_and_keep_their_order) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 640), written(b_nic, 64);
  from.fill(4);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(a->send(i, from.sge(i, 1)), PostResult::ok);
  ASSERT_EQ(a->write(10, from.all(), written.addr(), written.key()), PostResult::ok);
  EXPECT_EQ(written.part(0, 64), std::vector<std::byte>(64)) << "a WRITE overtook a SEND";
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_FALSE(a->poll_send());
    ASSERT_EQ(b->recv(i, {to.sge(i, 1)}), PostResult::ok);
    settle();
    ASSERT_TRUE(completed(b->poll_recv(), i));
    ASSERT_TRUE(completed(a->poll_send(), i));
  }
  EXPECT_TRUE(completed(a->poll_send(), 10));
  EXPECT_EQ(to.part(0, 10), from.part(0, 10));
  EXPECT_EQ(written.part(0, 64), from.part(0, 64));
}

TEST_F(Errors, each_waiting_send_has_retries_of_its_own) {
  connect_pair({.rnr_retry = 2}, {.min_rnr_timer = timer_640_us});
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  host.advance(timer_ns * 3 / 2);
  ASSERT_EQ(b->recv(1, {to.all()}), PostResult::ok);
  settle();
  ASSERT_TRUE(completed(a->poll_send(), 1));
  host.advance(timer_ns * 3 / 2);
  EXPECT_FALSE(a->poll_send());
  host.advance(timer_ns);
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::rnr_retry_exc_err));
}

TEST_F(Errors, write_with_imm_waits_for_a_receive_and_plain_write_does_not) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1));
  ASSERT_EQ(a->post({.wr_id = 2,
                     .opcode = SendOpcode::rdma_write_with_imm,
                     .flags = send_flag::signaled,
                     .remote_addr = to.addr(),
                     .rkey = to.key()},
                    {from.all()}),
            PostResult::ok);
  EXPECT_FALSE(a->poll_send());
  ASSERT_EQ(b->recv(3), PostResult::ok);
  settle();
  EXPECT_TRUE(completed(a->poll_send(), 2));
  EXPECT_TRUE(completed(b->poll_recv(), 3));
}

// A kick may come while a batch is being built (ibv_wr_start ... ibv_wr_complete) or posted by another
// thread.
TEST_F(Errors, a_kick_that_meets_a_thread_posting_is_not_lost) {
  connect_pair({.rnr_retry = 7});
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  a->qp().begin_posting();
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  std::thread progress([&] { settle(); });
  // Only gives the thread the chance to try; the outcome must be the same whether it did or not.
  for (int i = 0; i < 1000; ++i) sched_yield();
  a->qp().abort_posting();
  progress.join();
  EXPECT_TRUE(completed(b->poll_recv(), 2)) << "nobody polls at the sender: it may be asleep on its channel";
}

// ---- no response
// ----------------------------------------------------------------------------------------------

// timeout 10: 4.096 us * 2^10, and one try more than retries.
constexpr std::uint64_t timeout_10_ns = 4096ull << 10;

TEST_F(Errors, a_target_that_is_not_ready_exceeds_the_retries_by_the_clock) {
  Endpoint one(a_nic, {.timeout = 10, .retry_cnt = 3}), two(b_nic);
  two.modify(QpState::init);
  one.to_rts(two.qpn());
  Memory from(a_nic, 64);
  ASSERT_EQ(one.send(1, from.all()), PostResult::ok);
  ASSERT_EQ(one.send(2, from.all(), 0), PostResult::ok);
  host.advance(timeout_10_ns * 3);
  EXPECT_FALSE(one.poll_send());
  host.advance(timeout_10_ns + 1000);
  EXPECT_TRUE(completed(one.poll_send(), 1, WcStatus::retry_exc_err));
  EXPECT_TRUE(completed(one.poll_send(), 2, WcStatus::wr_flush_err));
  EXPECT_FALSE(one.poll_send());
}

TEST_F(Errors, a_target_that_becomes_ready_in_time_gets_what_waited) {
  Endpoint one(a_nic, {.timeout = 10, .retry_cnt = 3}), two(b_nic);
  one.to_rts(two.qpn());
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(2);
  ASSERT_EQ(one.write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_FALSE(one.poll_send());
  two.to_rtr(one.qpn());
  settle();
  EXPECT_TRUE(completed(one.poll_send(), 1)) << "ready to receive is enough";
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_F(Errors, a_target_connected_to_somebody_else_does_not_answer) {
  Endpoint one(a_nic, {.timeout = 10, .retry_cnt = 0}), two(b_nic), three(a_nic);
  connect(three, two);
  one.to_rts(two.qpn());
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  ASSERT_EQ(one.write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  host.advance(timeout_10_ns + 1000);
  EXPECT_TRUE(completed(one.poll_send(), 1, WcStatus::retry_exc_err));
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
}

TEST_F(Errors, a_number_that_nobody_has_does_not_answer) {
  Memory from(a_nic, 64);
  for (const Qpn nobody : {Qpn(1000, 5), Qpn(b_nic.slot(), 9999), Qpn(0, 77), Qpn()}) {
    SCOPED_TRACE(nobody.value());
    Endpoint one(a_nic, {.timeout = 10, .retry_cnt = 0});
    one.to_rts(nobody);
    ASSERT_EQ(one.send(1, from.all()), PostResult::ok);
    host.advance(timeout_10_ns + 1000);
    EXPECT_TRUE(completed(one.poll_send(), 1, WcStatus::retry_exc_err));
  }
}

TEST_F(Errors, timeout_0_waits_for_ever) {
  Endpoint one(a_nic, {.timeout = 0, .retry_cnt = 0}), two(b_nic);
  one.to_rts(two.qpn());
  Memory from(a_nic, 64);
  ASSERT_EQ(one.send(1, from.all()), PostResult::ok);
  host.advance(1'000'000'000'000);
  one.nic().adapter().service();
  EXPECT_FALSE(one.poll_send());
}

TEST_F(Errors, a_target_in_the_error_state_does_not_answer) {
  connect_pair({.timeout = 10, .retry_cnt = 1});
  b->modify(QpState::err);
  Memory from(a_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  host.advance(timeout_10_ns * 2 + 1000);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::retry_exc_err));
}

TEST_F(Errors, a_destroyed_target_does_not_answer) {
  connect_pair({.timeout = 10, .retry_cnt = 1});
  Memory from(a_nic, 64), to(b_nic, 64);
  b->destroy_qp();
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  host.advance(timeout_10_ns * 2 + 1000);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::retry_exc_err));
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
}

// ---- flush
// ----------------------------------------------------------------------------------------------------

TEST_F(Errors, moving_to_error_flushes_sends_and_receives_in_order) {
  connect_pair();
  Memory from(a_nic, 64), to(a_nic, 64);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(a->send(i, from.all(), 0), PostResult::ok);
  for (std::uint64_t i = 10; i < 15; ++i) ASSERT_EQ(a->recv(i, {to.all()}), PostResult::ok);
  a->modify(QpState::err);
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_TRUE(completed(a->poll_send(), i, WcStatus::wr_flush_err));
  for (std::uint64_t i = 10; i < 15; ++i) EXPECT_TRUE(completed(a->poll_recv(), i, WcStatus::wr_flush_err));
  EXPECT_FALSE(a->poll_send());
  EXPECT_FALSE(a->poll_recv());
  ASSERT_EQ(a->recv(20, {to.all()}), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_recv(), 20, WcStatus::wr_flush_err));
}

TEST_F(Errors, what_was_delivered_before_an_error_is_polled_before_the_flushes) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(6);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(b->recv(i, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  b->modify(QpState::err);
  EXPECT_TRUE(completed(b->poll_recv(), 0));
  EXPECT_TRUE(completed(b->poll_recv(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
  EXPECT_TRUE(completed(b->poll_recv(), 2, WcStatus::wr_flush_err));
  EXPECT_TRUE(completed(b->poll_recv(), 3, WcStatus::wr_flush_err));
  EXPECT_FALSE(b->poll_recv());
}

TEST_F(Errors, a_batch_that_fails_in_the_middle_completes_flushes_and_keeps_its_order) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  PostResult result;
  a->qp().begin_posting();
  for (std::uint64_t i = 0; i < 6; ++i) {
    const std::uint32_t rkey = i == 3 ? to.key() ^ 1 : to.key();
    SendWqe* wqe = a->qp().append({.wr_id = i,
                                   .opcode = SendOpcode::rdma_write,
                                   .flags = i % 2 == 0 ? send_flag::signaled : 0,
                                   .remote_addr = to.addr(),
                                   .rkey = rkey},
                                  result);
    ASSERT_NE(wqe, nullptr);
    const Sge sge = from.all();
    ASSERT_EQ(a->qp().set_sges(*wqe, {&sge, 1}), PostResult::ok);
  }
  a->qp().ring_doorbell();
  EXPECT_TRUE(completed(a->poll_send(), 0));
  EXPECT_TRUE(completed(a->poll_send(), 2));
  EXPECT_TRUE(completed(a->poll_send(), 3, WcStatus::rem_access_err));
  EXPECT_TRUE(completed(a->poll_send(), 4, WcStatus::wr_flush_err));
  EXPECT_TRUE(completed(a->poll_send(), 5, WcStatus::wr_flush_err));
  EXPECT_FALSE(a->poll_send());
}

// ---- unreliable connections
// -----------------------------------------------------------------------------------

// UC has no acknowledgements: the sender learns of nothing (IBA 9.8.2).
TEST_F(Errors, uc_sends_that_cannot_be_delivered_complete_and_are_lost) {
  connect_pair({.type = QpType::uc});
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1));
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  settle();
  EXPECT_FALSE(b->poll_recv()) << "a lost message came back";
  ASSERT_EQ(a->send(3, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(b->poll_recv(), 2));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_F(Errors, uc_writes_that_are_refused_complete_and_change_nothing) {
  connect_pair({.type = QpType::uc});
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key() ^ 1), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1));
  EXPECT_EQ(a->qp().state(), QpState::rts);
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
  settle();
  ASSERT_EQ(a->write(2, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_F(Errors, uc_sends_longer_than_the_receive_are_dropped_and_leave_it_posted) {
  connect_pair({.type = QpType::uc});
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  ASSERT_EQ(b->recv(1, {to.sge(0, 40)}), PostResult::ok);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2));
  settle();
  EXPECT_FALSE(b->poll_recv());
  ASSERT_EQ(a->send(3, from.sge(0, 40)), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 3));
  EXPECT_TRUE(completed(b->poll_recv(), 1));
}

TEST_F(Errors, uc_local_faults_are_reported) {
  connect_pair({.type = QpType::uc});
  Memory from(a_nic, 64);
  ASSERT_EQ(a->send(1, from.sge(1, 64)), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_prot_err));
}

TEST_F(Errors, uc_to_nobody_completes) {
  Endpoint one(a_nic, {.type = QpType::uc});
  one.to_rts(Qpn(1000, 5));
  Memory from(a_nic, 64);
  ASSERT_EQ(one.send(1, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(one.poll_send(), 1));
}

}  // namespace
}  // namespace weir::rnic::test

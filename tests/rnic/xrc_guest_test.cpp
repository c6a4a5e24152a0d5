// Extended reliable connections between three processes: the sender, the owner of the queue pair that
// answers, and the owner of the SRQ.
#include <thread>

#include "rnic/same_host/guest_operations.hpp"
#include "xrc_ends.hpp"

namespace weir::rnic::test {
namespace {

// A sender on a, a target on b, an SRQ on c.
class XrcGuest : public TwoNics, public testing::WithParamInterface<Reach> {
 protected:
  Reach reach() const { return GetParam(); }
  void send(XrcPair& pair, std::uint64_t id, std::size_t bytes = 8) {
    ASSERT_EQ(pair.post({.wr_id = id}, receiver.srq->number(), {from.sge(0, bytes)}), PostResult::ok);
  }

  Nic& c_nic{host.add_nic()};
  XrcReceiver receiver{c_nic};
  Memory from{a_nic, 20'000, all_access, reach()}, into{c_nic, 20'000, all_access, reach()};
};
INSTANTIATE_TEST_SUITE_P(Reach, XrcGuest, testing::Values(Reach::copied, Reach::mapped),
                         [](const auto& param_info) {
                           return param_info.param == Reach::copied ? "copied" : "mapped";
                         });

TEST_P(XrcGuest, a_send_goes_into_the_srq_of_another_process_than_its_queue_pairs) {
  XrcPair pair(a_nic, b_nic);
  std::uint64_t id = 0;
  for (const std::size_t size : {0u, 1u, 36u, 37u, 64u, 8192u, 20'000u}) {
    SCOPED_TRACE(size);
    from.fill(static_cast<std::uint32_t>(size));
    receiver.post(++id, into.all());
    send(pair, 9, size);
    ASSERT_TRUE(completed(pair.poll(), 9));
    const auto wc = receiver.poll();
    ASSERT_TRUE(completed(wc, id));
    EXPECT_EQ(wc->byte_len, size);
    EXPECT_EQ(wc->qpn, pair.target->qpn().value());
    EXPECT_EQ(into.part(0, size), from.part(0, size));
  }
}

TEST_P(XrcGuest, one_sided_operations_act_on_the_memory_of_the_srqs_process) {
  // The second key of b names nothing on c, which has one.
  Memory of_b(b_nic, 64), of_the_queue_pair(b_nic, 64, all_access, reach());
  struct Row {
    SendOpcode opcode;
    WcOpcode completes_as;
  };
  for (const Row& row :
       {Row{SendOpcode::rdma_write, WcOpcode::rdma_write}, Row{SendOpcode::rdma_read, WcOpcode::rdma_read},
        Row{SendOpcode::fetch_and_add, WcOpcode::fetch_and_add},
        Row{SendOpcode::atomic_write, WcOpcode::atomic_write}}) {
    SCOPED_TRACE(static_cast<int>(row.opcode));
    XrcPair pair(a_nic, b_nic);
    SendRequest request{.wr_id = 3, .opcode = row.opcode, .remote_addr = into.addr(), .rkey = into.key()};
    ASSERT_EQ(pair.post(request, receiver.srq->number(), {from.sge(0, 8)}), PostResult::ok);
    const auto wc = pair.poll();
    ASSERT_TRUE(completed(wc, 3));
    EXPECT_EQ(wc->opcode, row.completes_as);
    request.remote_addr = of_the_queue_pair.addr();
    request.rkey = of_the_queue_pair.key();
    ASSERT_EQ(pair.post(request, receiver.srq->number(), {from.sge(0, 8)}), PostResult::ok);
    EXPECT_TRUE(completed(pair.poll(), 3, WcStatus::rem_access_err));
  }
}

TEST_P(XrcGuest, one_queue_pair_serves_srqs_of_several_processes_in_turn) {
  XrcReceiver at_target(b_nic), at_sender(a_nic);
  Memory into_b(b_nic, 64, all_access, reach()), into_a(a_nic, 64, all_access, reach());
  XrcPair pair(a_nic, b_nic);
  struct Row {
    XrcReceiver& receiver;
    Memory& memory;
  };
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (const Row& row : {Row{receiver, into}, Row{at_target, into_b}, Row{at_sender, into_a}}) {
      row.receiver.post(round, row.memory.sge(0, 64));
      ASSERT_EQ(pair.post({.wr_id = round}, row.receiver.srq->number(), {from.sge(0, 64)}), PostResult::ok);
      ASSERT_TRUE(completed(pair.poll(), round));
      EXPECT_TRUE(completed(row.receiver.poll(), round));
    }
  }
}

TEST_P(XrcGuest, a_post_to_the_srq_wakes_a_sender_whom_its_process_does_not_know) {
  XrcPair pair(a_nic, b_nic), own(c_nic, b_nic);
  Memory from_c(c_nic, 64, all_access, reach());
  send(pair, 1);
  ASSERT_EQ(own.post({.wr_id = 2}, receiver.srq->number(), {from_c.sge(0, 8)}), PostResult::ok);
  EXPECT_FALSE(pair.poll());
  EXPECT_FALSE(own.poll());
  receiver.post(5, into.sge(0, 64));
  receiver.post(6, into.sge(64, 64));
  settle();
  EXPECT_EQ(pair.cq->unpolled(), 1u) << "the poll alone would try again";
  EXPECT_EQ(own.cq->unpolled(), 1u);
  EXPECT_TRUE(completed(pair.poll(), 1));
  EXPECT_TRUE(completed(own.poll(), 2));
}

TEST_P(XrcGuest, a_message_waits_for_the_connection_to_the_srqs_process) {
  XrcPair pair(a_nic, b_nic);
  bool connected = false;
  a_nic.on_reach = [&](Slot slot) { return slot != c_nic.slot() || connected; };
  receiver.post(5, into.sge(0, 64));
  send(pair, 1);
  EXPECT_FALSE(pair.poll());
  connected = true;
  a_nic.adapter().service();
  EXPECT_TRUE(completed(pair.poll(), 1));
  EXPECT_TRUE(completed(receiver.poll(), 5));
}

// On a wire the SRQ would be gone, its queue pair's NIC alive.
TEST_P(XrcGuest, a_message_to_the_srq_of_a_killed_process_is_an_invalid_request) {
  XrcPair pair(a_nic, b_nic), other(a_nic, b_nic);
  XrcReceiver survivor(b_nic);
  Memory into_b(b_nic, 64, all_access, reach());
  receiver.post(5, into.sge(0, 64));
  send(pair, 1);
  ASSERT_TRUE(completed(pair.poll(), 1));
  const Qpn number = receiver.srq->number();
  host.kill(c_nic);
  settle();
  ASSERT_EQ(pair.post({.wr_id = 2}, number, {from.sge(0, 8)}), PostResult::ok);
  EXPECT_TRUE(completed(pair.poll(), 2, WcStatus::rem_inv_req_err));
  settle();
  EXPECT_EQ(pair.target->state(), QpState::err);
  survivor.post(6, into_b.all());
  ASSERT_EQ(other.post({.wr_id = 3}, survivor.srq->number(), {from.sge(0, 8)}), PostResult::ok);
  EXPECT_TRUE(completed(other.poll(), 3)) << "its other connections go on";
  EXPECT_TRUE(completed(survivor.poll(), 6));
}

TEST_P(XrcGuest, who_waits_for_a_receive_hears_of_the_end_of_the_srqs_process) {
  XrcPair pair(a_nic, b_nic);
  send(pair, 1);
  EXPECT_FALSE(pair.poll());
  host.kill(c_nic);
  settle();
  EXPECT_EQ(pair.cq->unpolled(), 1u);
  EXPECT_TRUE(completed(pair.poll(), 1, WcStatus::rem_inv_req_err));
}

TEST_P(XrcGuest, a_process_in_the_slot_of_a_killed_one_is_another) {
  XrcPair pair(a_nic, b_nic);
  receiver.post(5, into.sge(0, 64));
  send(pair, 1);
  ASSERT_TRUE(completed(pair.poll(), 1));
  host.kill(c_nic);
  settle();
  Nic& next = host.replace(c_nic);
  XrcReceiver again(next);
  Memory into_next(next, 64, all_access, reach());
  ASSERT_EQ(again.srq->number(), receiver.srq->number());
  again.post(6, into_next.all());
  send(pair, 2);
  EXPECT_TRUE(completed(pair.poll(), 2));
  EXPECT_TRUE(completed(again.poll(), 6));
}

TEST_P(XrcGuest, deregistration_waits_for_a_guest) {
  XrcPair pair(a_nic, b_nic);
  std::uint32_t hint = 0;
  ASSERT_NE(c_nic.peer(a_nic.slot(), HostPort::Wait::no), nullptr);
  auto inside =
      std::make_unique<GuestOperation>(c_nic.adapter().segment().header(), pair.sender->qpn(), hint);
  std::atomic<bool> freed = false;
  std::thread owner([&] {
    into.deregister();
    freed = true;
  });
  while (c_nic.adapter().table().entry(into.key()).key.load() != 0) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(freed);
  inside.reset();
  owner.join();
}

TEST_P(XrcGuest, what_a_killed_guest_was_inside_of_is_free_again) {
  XrcPair pair(a_nic, b_nic);
  std::uint32_t hint = 0;
  SegmentHeader& header = c_nic.adapter().segment().header();
  ASSERT_NE(c_nic.peer(a_nic.slot(), HostPort::Wait::no), nullptr);
  // After a SIGKILL the scope never ends.
  alignas(GuestOperation) std::byte never_ends[sizeof(GuestOperation)];
  ASSERT_TRUE((new (never_ends) GuestOperation(header, pair.sender->qpn(), hint))->inside());
  host.kill(a_nic);
  settle();
  EXPECT_EQ(GuestWord::unpack(header.guests[0].word.load()).initiator, Qpn());
  into.deregister();
}

TEST_P(XrcGuest, nobody_is_let_in_while_all_places_are_taken) {
  XrcPair pair(a_nic, b_nic);
  SegmentHeader& header = c_nic.adapter().segment().header();
  std::uint32_t hint = 0;
  std::vector<std::unique_ptr<GuestOperation>> crowd;
  for (std::uint32_t i = 0; i < max_guests; ++i)
    crowd.push_back(std::make_unique<GuestOperation>(header, Qpn(b_nic.slot(), 2 + i), hint));
  receiver.post(5, into.sge(0, 64));
  send(pair, 1);
  EXPECT_FALSE(pair.poll());
  EXPECT_FALSE(receiver.poll());
  crowd.pop_back();
  host.advance(1'000'000);
  EXPECT_TRUE(completed(pair.poll(), 1));
  EXPECT_TRUE(completed(receiver.poll(), 5));
}

TEST_P(XrcGuest, an_srq_that_is_destroyed_takes_no_more) {
  XrcPair pair(a_nic, b_nic);
  auto temporary = std::make_unique<XrcReceiver>(c_nic);
  const Qpn number = temporary->srq->number();
  temporary->post(1, into.sge(0, 64));
  ASSERT_EQ(pair.post({.wr_id = 1}, number, {from.sge(0, 8)}), PostResult::ok);
  ASSERT_TRUE(completed(pair.poll(), 1));
  temporary.reset();
  ASSERT_EQ(pair.post({.wr_id = 2}, number, {from.sge(0, 8)}), PostResult::ok);
  EXPECT_TRUE(completed(pair.poll(), 2, WcStatus::rem_inv_req_err));
}

// Whatever a neighbour writes over what is shared.
TEST_P(XrcGuest, nonsense_in_the_srqs_context_is_no_answer) {
  for (const auto word :
       {&SrqContext::ring_offset, &SrqContext::wqe_offset, &SrqContext::completions_offset}) {
    for (const std::uint64_t nonsense : {std::uint64_t{1}, std::uint64_t{0xffff'ffff'ffff'ffc0}}) {
      XrcPair pair(a_nic, b_nic);
      XrcReceiver spoiled(c_nic);
      const std::uint64_t before = std::exchange(spoiled.srq->context().*word, nonsense);
      ASSERT_EQ(pair.post({.wr_id = 1}, spoiled.srq->number(), {from.sge(0, 8)}), PostResult::ok);
      host.advance(1'000'000'000);
      EXPECT_TRUE(completed(pair.poll(), 1, WcStatus::retry_exc_err));
      spoiled.srq->context().*word = before;
    }
  }
}

}  // namespace
}  // namespace weir::rnic::test

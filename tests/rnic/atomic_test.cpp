// COMPARE AND SWAP, FETCH AND ADD and ATOMIC WRITE: what they return, store and refuse, that none is lost
// when many run at once, and that a killed one delays nobody.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

struct Tier {
  Reach reach;
  const char* name;
};
constexpr Tier tiers[] = {{Reach::copied, "copied"}, {Reach::mapped, "mapped"}};

std::uint64_t word_at(Memory& memory, std::size_t offset = 0) {
  std::uint64_t word;
  std::memcpy(&word, memory.data() + offset, sizeof word);
  return word;
}
void set_word(Memory& memory, std::uint64_t value) { std::memcpy(memory.data(), &value, sizeof value); }

SendRequest compare_and_swap(const Memory& target, std::uint64_t compare, std::uint64_t swap) {
  return {.wr_id = 1,
          .opcode = SendOpcode::compare_and_swap,
          .flags = send_flag::signaled,
          .remote_addr = target.addr(),
          .rkey = target.key(),
          .atomic = {compare, swap}};
}
SendRequest fetch_and_add(const Memory& target, std::uint64_t add) {
  return {.wr_id = 1,
          .opcode = SendOpcode::fetch_and_add,
          .flags = send_flag::signaled,
          .remote_addr = target.addr(),
          .rkey = target.key(),
          .atomic = {add, 0}};
}

SendRequest atomic_write(const Memory& target) {
  return {.wr_id = 1,
          .opcode = SendOpcode::atomic_write,
          .flags = send_flag::signaled,
          .remote_addr = target.addr(),
          .rkey = target.key()};
}

class Atomic : public TwoNics, public testing::WithParamInterface<Tier> {
 protected:
  Atomic() { connect_pair(); }
  Reach reach() const { return GetParam().reach; }
};
INSTANTIATE_TEST_SUITE_P(Reach, Atomic, testing::ValuesIn(tiers),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(Atomic, fetch_and_add_returns_the_old_value_and_wraps) {
  Memory target(b_nic, 8, all_access, reach()), result(a_nic, 8);
  struct Row {
    std::uint64_t before, add, after;
  };
  for (const Row& row : {Row{5, 7, 12}, Row{0, 0, 0}, Row{UINT64_MAX, 1, 0}, Row{0xffffffff, 1, 1ull << 32},
                         Row{10, static_cast<std::uint64_t>(-3), 7}}) {
    SCOPED_TRACE(row.before);
    set_word(target, row.before);
    ASSERT_EQ(a->post(fetch_and_add(target, row.add), {result.all()}), PostResult::ok);
    const auto wc = a->poll_send();
    ASSERT_TRUE(completed(wc, 1));
    EXPECT_EQ(wc->opcode, WcOpcode::fetch_and_add);
    EXPECT_EQ(wc->byte_len, 8u);
    EXPECT_EQ(word_at(result), row.before);
    EXPECT_EQ(word_at(target), row.after);
  }
}

TEST_P(Atomic, compare_and_swap_stores_only_where_it_finds_what_it_compares_with) {
  Memory target(b_nic, 8, all_access, reach()), result(a_nic, 8);
  struct Row {
    std::uint64_t before, compare, swap, after;
  };
  for (const Row& row : {Row{5, 5, 9, 9}, Row{5, 6, 9, 5}, Row{0, 0, UINT64_MAX, UINT64_MAX},
                         Row{1ull << 32, 0, 7, 1ull << 32}, Row{3, 3, 3, 3}}) {
    SCOPED_TRACE(row.before);
    set_word(target, row.before);
    ASSERT_EQ(a->post(compare_and_swap(target, row.compare, row.swap), {result.all()}), PostResult::ok);
    const auto wc = a->poll_send();
    ASSERT_TRUE(completed(wc, 1));
    EXPECT_EQ(wc->opcode, WcOpcode::compare_and_swap);
    EXPECT_EQ(word_at(result), row.before);
    EXPECT_EQ(word_at(target), row.after);
  }
}

TEST_P(Atomic, the_result_is_scattered_and_what_lies_behind_it_stays) {
  Memory target(b_nic, 8, all_access, reach()), result(a_nic, 32);
  set_word(target, 0x0807060504030201);
  ASSERT_EQ(a->post(fetch_and_add(target, 1), {result.sge(0, 3), result.sge(8, 4), result.sge(16, 8)}),
            PostResult::ok);
  const auto wc = a->poll_send();
  ASSERT_TRUE(completed(wc, 1));
  EXPECT_EQ(wc->byte_len, 8u);
  const std::uint8_t expected[32] = {1, 2, 3, 0, 0, 0, 0, 0, 4, 5, 6, 7, 0, 0, 0, 0, 8};
  EXPECT_EQ(std::memcmp(result.data(), expected, sizeof expected), 0);
}

TEST_P(Atomic, that_is_misaligned_is_an_invalid_request) {
  Memory target(b_nic, 32, all_access, reach()), result(a_nic, 8);
  SendRequest request = fetch_and_add(target, 1);
  request.remote_addr += 4;
  ASSERT_EQ(a->post(request, {result.all()}), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::rem_inv_req_err));
  EXPECT_EQ(target.part(0, 32), std::vector<std::byte>(32));
  settle();
  EXPECT_EQ(b->qp().state(), QpState::err);
}

TEST_P(Atomic, beyond_its_region_is_an_access_error) {
  Memory target(b_nic, 12, all_access, reach()), result(a_nic, 8);
  SendRequest request = fetch_and_add(target, 1);
  request.remote_addr += 8;
  ASSERT_EQ(a->post(request, {result.all()}), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::rem_access_err));
}

TEST_P(Atomic, whose_result_has_no_room_is_a_length_error_and_changes_nothing) {
  Memory target(b_nic, 8, all_access, reach()), result(a_nic, 8);
  ASSERT_EQ(a->post(fetch_and_add(target, 1), {result.sge(0, 7)}), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_len_err));
  EXPECT_EQ(word_at(target), 0u);
}

TEST_P(Atomic, whose_result_may_not_be_written_is_a_protection_error) {
  Memory target(b_nic, 8, all_access, reach()), result(a_nic, 8, access::remote_read);
  ASSERT_EQ(a->post(fetch_and_add(target, 1), {result.all()}), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_prot_err));
  EXPECT_EQ(word_at(target), 0u);
}

TEST_P(Atomic, write_stores_eight_bytes_from_wherever_they_lie) {
  Memory target(b_nic, 24, all_access, reach()), source(a_nic, 16);
  set_word(source, 0x0807060504030201);
  SendRequest request = atomic_write(target);
  request.remote_addr += 8;
  ASSERT_EQ(a->post(request, {source.sge(4, 4), source.sge(0, 4)}), PostResult::ok);
  const auto wc = a->poll_send();
  ASSERT_TRUE(completed(wc, 1));
  EXPECT_EQ(wc->opcode, WcOpcode::atomic_write);
  EXPECT_EQ(word_at(target), 0u);
  EXPECT_EQ(word_at(target, 8), 0x0403020108070605u);
  EXPECT_EQ(word_at(target, 16), 0u);
}

TEST_P(Atomic, write_of_any_other_length_is_a_length_error) {
  for (const std::uint32_t length : {0u, 7u, 9u}) {
    SCOPED_TRACE(length);
    connect_pair();
    Memory target(b_nic, 16, all_access, reach()), source(a_nic, 16);
    set_word(source, UINT64_MAX);
    ASSERT_EQ(a->post(atomic_write(target), {source.sge(0, length)}), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_len_err));
    EXPECT_EQ(word_at(target), 0u);
  }
}

TEST_P(Atomic, write_that_is_misaligned_is_an_invalid_request) {
  Memory target(b_nic, 32, all_access, reach()), source(a_nic, 8);
  set_word(source, UINT64_MAX);
  SendRequest request = atomic_write(target);
  request.remote_addr += 2;
  ASSERT_EQ(a->post(request, {source.all()}), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::rem_inv_req_err));
  EXPECT_EQ(target.part(0, 32), std::vector<std::byte>(32));
}

TEST_P(Atomic, counts_of_many_initiators_add_up) {
  constexpr int initiators = 4, rounds = 2000;
  Memory target(b_nic, 8, all_access, reach());
  std::vector<std::unique_ptr<Endpoint>> ends;
  for (int i = 0; i < 2 * initiators; ++i)
    ends.push_back(std::make_unique<Endpoint>(i % 2 == 0 ? a_nic : b_nic));
  for (int i = 0; i < initiators; ++i) connect(*ends[2 * i], *ends[2 * i + 1]);
  std::vector<std::thread> threads;
  for (int i = 0; i < initiators; ++i) {
    threads.emplace_back([&, i] {
      Memory result(a_nic, 8);
      for (int done = 0; done < rounds; ++done) {
        ends[2 * i]->post(fetch_and_add(target, 1), {result.all()});
        while (!ends[2 * i]->poll_send()) sched_yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(word_at(target), std::uint64_t{initiators} * rounds);
}

class AtomicRights : public TwoNics {
 protected:
  AtomicLock& lock_of(const Memory& target) {
    return b_nic.adapter().segment().header().atomic_locks[atomic_lock_of(target.addr())];
  }
};

TEST_F(AtomicRights, needs_the_right_of_region_and_queue_pair) {
  struct Row {
    std::uint32_t region, queue_pair;
    WcStatus status;
  };
  constexpr std::uint32_t others = access::remote_write | access::remote_read;
  for (const Row& row : {Row{others, others | access::remote_atomic, WcStatus::rem_access_err},
                         Row{others | access::remote_atomic, others, WcStatus::rem_inv_req_err}}) {
    connect_pair({}, {.qp_access = row.queue_pair});
    Memory target(b_nic, 8, access::local_write | row.region), result(a_nic, 8);
    ASSERT_EQ(a->post(fetch_and_add(target, 1), {result.all()}), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 1, row.status));
    EXPECT_EQ(word_at(target), 0u);
  }
}

TEST_F(AtomicRights, an_atomic_write_needs_those_of_a_write) {
  struct Row {
    std::uint32_t region;
    WcStatus status;
  };
  for (const Row& row : {Row{access::remote_write, WcStatus::success},
                         Row{access::remote_atomic | access::remote_read, WcStatus::rem_access_err}}) {
    connect_pair();
    Memory target(b_nic, 8, access::local_write | row.region), source(a_nic, 8);
    ASSERT_EQ(a->post(atomic_write(target), {source.all()}), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 1, row.status));
  }
}

TEST_F(AtomicRights, reads_and_atomics_need_a_depth_at_both_ends) {
  for (const bool read : {false, true}) {
    SCOPED_TRACE(read ? "read" : "atomic");
    Memory target(b_nic, 8), result(a_nic, 8);
    SendRequest request = fetch_and_add(target, 1);
    if (read) request.opcode = SendOpcode::rdma_read;
    connect_pair({.max_rd_atomic = 0}, {});
    ASSERT_EQ(a->post(request, {result.all()}), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_qp_op_err));
    connect_pair({}, {.max_dest_rd_atomic = 0});
    ASSERT_EQ(a->post(request, {result.all()}), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::rem_inv_req_err));
    EXPECT_EQ(word_at(target), 0u);
  }
}

TEST_F(AtomicRights, only_reliable_connections_have_them) {
  for (const QpType type : {QpType::uc, QpType::ud}) {
    Endpoint end(a_nic, {.type = type});
    end.to_rts(type == QpType::ud ? Qpn() : end.qpn());
    Memory memory(a_nic, 8);
    EXPECT_EQ(end.post(fetch_and_add(memory, 1), {memory.all()}), PostResult::bad_opcode);
    EXPECT_EQ(end.post(compare_and_swap(memory, 1, 2), {memory.all()}), PostResult::bad_opcode);
    EXPECT_EQ(end.post(atomic_write(memory), {memory.all()}), PostResult::bad_opcode);
  }
}

TEST_F(AtomicRights, an_address_that_its_region_shifts_still_works) {
  connect_pair();
  std::vector<std::byte> bytes(64);
  const auto base = reinterpret_cast<std::uint64_t>(bytes.data()) + 3;
  for (const std::uint32_t window : {0u, 1u}) {
    const auto key = b_nic.adapter().table().insert(
        {.addr = 0x1000, .base = base, .length = 8, .access = all_access, .pd = pd, .window = window});
    ASSERT_TRUE(key);
    Memory result(a_nic, 8);
    SendRequest request = {.wr_id = 1,
                           .opcode = SendOpcode::fetch_and_add,
                           .flags = send_flag::signaled,
                           .remote_addr = 0x1000,
                           .rkey = *key,
                           .atomic = {4, 0}};
    ASSERT_EQ(a->post(request, {result.all()}), PostResult::ok);
    ASSERT_TRUE(completed(a->poll_send(), 1));
    EXPECT_EQ(word_at(result), window * 4u);
  }
  EXPECT_EQ(bytes[3], std::byte{8});
}

// ---- the lock

// Takes the lock in another thread, as if that thread were stopped within an atomic.
class LockHolder {
 public:
  explicit LockHolder(AtomicLock& lock)
      : thread_([this, &lock] {
          EXPECT_EQ(lock.take(), AtomicLock::Taken::yes);
          holds_ = true;
          holds_.notify_one();
          lets_go_.wait(false);
          lock.unlock();
        }) {
    holds_.wait(false);
  }
  ~LockHolder() { let_go(); }

  void let_go() {
    if (!thread_.joinable()) return;
    lets_go_ = true;
    lets_go_.notify_one();
    thread_.join();
  }

 private:
  std::atomic<bool> holds_{false}, lets_go_{false};
  std::thread thread_;  // last: it uses the others
};

// On a wire no initiator holds up another's atomic, so waiting for one spends no retries.
TEST_F(AtomicRights, outwait_a_stopped_holder_of_the_lock_and_are_tried_again_unpolled) {
  for (const std::uint8_t timeout : {0, 8}) {
    connect_pair({.timeout = timeout, .retry_cnt = 1}, {});
    Memory target(b_nic, 8), result(a_nic, 8);
    LockHolder holder(lock_of(target));
    ASSERT_EQ(a->post(fetch_and_add(target, 1), {result.all()}), PostResult::ok);
    for (int seconds = 0; seconds < 3; ++seconds) {
      for (int tenths = 0; tenths < 10; ++tenths) host.advance(100'000'000);
      EXPECT_FALSE(a->poll_send()) << "timeout " << int{timeout};
    }
    holder.let_go();
    host.advance(20'000'000);
    EXPECT_EQ(word_at(target), 1u) << "nobody has polled since";
    EXPECT_TRUE(completed(a->poll_send(), 1)) << "timeout " << int{timeout};
  }
}

TEST_F(AtomicRights, that_wait_for_a_lock_fail_when_their_target_dies) {
  connect_pair({.timeout = 0}, {});
  Memory target(b_nic, 8), result(a_nic, 8);
  const LockHolder holder(lock_of(target));
  ASSERT_EQ(a->post(fetch_and_add(target, 1), {result.all()}), PostResult::ok);
  host.kill(b_nic);
  settle();
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::retry_exc_err));
}

TEST(AtomicLock, is_taken_from_a_process_that_was_killed_while_it_held_it) {
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& lock = *static_cast<AtomicLock*>(memory);
  lock.make();
  for (int round = 0; round < 3; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (lock.take() == AtomicLock::Taken::yes) ::raise(SIGKILL);
      ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child could not take it";
    EXPECT_EQ(lock.take(), AtomicLock::Taken::yes);
    lock.unlock();
  }
  ::munmap(memory, 4096);
}

}  // namespace
}  // namespace weir::rnic::test

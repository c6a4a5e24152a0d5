// The weak NIC: what it may do it does, with some seed, and what it may not do it does with none.
#include <gmock/gmock.h>

#include <set>

#include "litmus.hpp"
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

using testing::HasSubstr;
using weak::Plan;
using weak::read_plan;
using weak::text_of;
using weak::Weakness;

// ---- the table and its words

TEST(WeakPlan, every_weakness_of_level_1_has_its_clause) {
  for (const weak::WeaknessRow& row : weak::table) {
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(row.what.empty());
    EXPECT_FALSE(row.repair.empty());
    const bool cited =
        row.clause.find("(3)") != row.clause.npos || row.clause.find("IBA vol. 1") != row.clause.npos;
    EXPECT_TRUE(cited || row.level == 2) << "without a clause it is level 2";
  }
}

TEST(WeakPlan, words_choose_weaknesses) {
  const std::uint32_t all = weak::level_1();
  const std::uint32_t lines = weak::bit(Weakness::lines), loss = weak::bit(Weakness::datagram_loss);
  struct Row {
    const char* words;
    Plan plan;
  };
  for (const Row& row :
       {Row{"7", {7, all}}, Row{"7,-lines", {7, all & ~lines}}, Row{"0,+datagram-loss", {0, all | loss}},
        Row{"7,lines", {7, lines}}, Row{"7,lines,datagram-loss", {7, lines | loss}},
        Row{"18446744073709551615,none", {~0ull, 0}}}) {
    SCOPED_TRACE(row.words);
    const auto plan = read_plan(row.words);
    ASSERT_TRUE(plan) << plan.error();
    EXPECT_EQ(*plan, row.plan);
    EXPECT_EQ(text_of(*plan), row.words);
  }
}

TEST(WeakPlan, wrong_words_are_named) {
  for (const auto& [words, what] :
       {std::pair{"", "seed"}, std::pair{"x", "'x'"}, std::pair{"7,nothing", "'nothing'"},
        std::pair{"7,+none", "'+none'"}, std::pair{"7,lines,-delay", "'-delay'"},
        std::pair{"7,-lines,delay", "'delay'"}}) {
    SCOPED_TRACE(words);
    const auto plan = read_plan(words);
    ASSERT_FALSE(plan);
    EXPECT_THAT(plan.error(), HasSubstr(what));
  }
}

// ---- the model

TEST(WeakModel, has_the_outcomes_of_the_specification) {
  for (const Litmus& litmus : litmus_tests()) {
    SCOPED_TRACE(litmus.name);
    EXPECT_EQ(all_outcomes(litmus), litmus.allowed);
  }
}

// ---- the NIC against the model

class WeakNic : public TwoNics {
 protected:
  static constexpr std::size_t line = 128;
  void make_weak(const Plan& plan) {
    a_nic.adapter().set_weak(plan);
    connect_pair();
  }
  // Time passes, and the program polls.
  std::optional<WorkCompletion> look(Endpoint& of) {
    host.advance(500);
    return of.poll_send();
  }
  WorkCompletion wait(Endpoint& of) {
    for (int tries = 0; tries < 100'000; ++tries)
      if (const auto wc = look(of)) return *wc;
    ADD_FAILURE() << "no completion";
    return {};
  }
};

constexpr std::uint64_t long_enough_ns = 100'000'000;

TEST_F(WeakNic, requests_are_over_in_time_without_anybody_polling) {
  make_weak({.seed = 3});
  Memory from(a_nic, 4096), to(b_nic, 4096);
  from.fill(1);
  for (std::uint64_t id = 0; id < 60; ++id)
    ASSERT_EQ(a->write(id, from.sge(id * 64, 64), to.addr() + id * 64, to.key()), PostResult::ok);
  EXPECT_NE(to.part(0, 60 * 64), from.part(0, 60 * 64)) << "with this seed something waits";
  host.advance(long_enough_ns);
  EXPECT_EQ(to.part(0, 60 * 64), from.part(0, 60 * 64));
  const auto all = Endpoint::drain(a->send_cq());
  ASSERT_EQ(all.size(), 60u);
  for (std::uint64_t id = 0; id < 60; ++id) EXPECT_EQ(all[id].wr_id, id);
}

TEST_F(WeakNic, a_failed_request_completes_those_before_it_first) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    if (seed == 0) make_weak({.seed = 5});
    if (seed != 0) {
      for (Endpoint* end : {a.get(), b.get()}) ASSERT_TRUE(end->modify(QpState::reset));
      connect(*a, *b);
    }
    Memory from(a_nic, 256), to(b_nic, 256);
    for (std::uint64_t id = 0; id < 16; ++id) {
      const std::uint32_t key = id == 10 ? to.key() ^ 1 : to.key();
      const bool reads = id % 3 == 0 && id != 10;
      const PostResult result = reads ? a->read(id, from.sge(0, 128), to.addr(), key)
                                      : a->write(id, from.sge(128, 128), to.addr() + 128, key);
      ASSERT_EQ(result, PostResult::ok);
    }
    std::vector<WorkCompletion> all;
    for (int looks = 0; looks < 1000 && all.size() < 16; ++looks)
      if (const auto wc = look(*a)) all.push_back(*wc);
    settle();
    ASSERT_EQ(all.size(), 16u);
    for (std::uint64_t id = 0; id < 16; ++id) {
      EXPECT_EQ(all[id].wr_id, id);
      const WcStatus expected = id < 10    ? WcStatus::success
                                : id == 10 ? WcStatus::rem_access_err
                                           : WcStatus::wr_flush_err;
      EXPECT_EQ(all[id].status, expected) << id;
    }
  }
}

TEST_F(WeakNic, a_send_waits_for_its_receive_as_ever) {
  make_weak({.seed = 1});
  Memory from(a_nic, 64), to(b_nic, 64);
  for (std::uint64_t id = 0; id < 20; ++id) {
    from.fill(static_cast<std::uint32_t>(id));
    ASSERT_EQ(a->send(id, from.all()), PostResult::ok);
    host.advance(5'000'000);
    EXPECT_FALSE(a->poll_send());
    ASSERT_EQ(b->recv(id, {to.all()}), PostResult::ok);
    settle();
    EXPECT_TRUE(completed(wait(*a), id));
    EXPECT_TRUE(completed(b->poll_recv(), id));
    EXPECT_EQ(to.part(0, 64), from.part(0, 64));
  }
}

TEST_F(WeakNic, a_pause_completes_what_has_begun_and_begins_nothing_else) {
  make_weak({.seed = 9});
  Memory from(a_nic, 1024), to(b_nic, 1024);
  std::uint64_t done = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (std::uint64_t id = 0; id < 20; ++id)
      ASSERT_EQ(a->write(round * 20 + id, from.all(), to.addr(), to.key()), PostResult::ok);
    host.advance(30'000);
    ASSERT_TRUE(a->modify(QpState::sqd));
    EXPECT_FALSE(a->qp().draining());
    done += Endpoint::drain(a->send_cq()).size();
    host.advance(long_enough_ns);
    EXPECT_TRUE(Endpoint::drain(a->send_cq()).empty());
    ASSERT_TRUE(a->modify(QpState::rts));
    host.advance(long_enough_ns);
    done += Endpoint::drain(a->send_cq()).size();
    EXPECT_EQ(done, (round + 1) * 20);
  }
}

TEST_F(WeakNic, an_error_flushes_what_waits_by_choice) {
  make_weak({.seed = 3});
  Memory from(a_nic, 64), to(b_nic, 64);
  for (std::uint64_t id = 0; id < 40; ++id)
    ASSERT_EQ(a->write(id, from.all(), to.addr(), to.key()), PostResult::ok);
  ASSERT_TRUE(a->modify(QpState::err));
  const auto all = Endpoint::drain(a->send_cq());
  ASSERT_EQ(all.size(), 40u);
  EXPECT_EQ(all.back().status, WcStatus::wr_flush_err) << "with this seed something waited";
  to.clear();
  host.advance(long_enough_ns);
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64)) << "nothing is executed behind the error";
}

TEST_F(WeakNic, what_a_peer_has_acknowledged_is_no_failure_when_it_ends) {
  make_weak({.seed = 3});
  Memory from(a_nic, 64), to(b_nic, 64);
  for (std::uint64_t id = 0; id < 20; ++id) {
    // The last of them is there: all have been executed.
    from.fill(static_cast<std::uint32_t>(id));
    ASSERT_EQ(a->read(id, from.all(), to.addr(), to.key()), PostResult::ok);
    ASSERT_EQ(b->recv(id), PostResult::ok);
    ASSERT_EQ(a->send(id, from.sge(0, 0), 0), PostResult::ok);
    while (!b->poll_recv()) host.advance(1'000);
  }
  host.kill(b_nic);
  settle();
  std::size_t reads = 0;
  for (const WorkCompletion& wc : Endpoint::drain(a->send_cq())) {
    EXPECT_EQ(wc.status, WcStatus::success);
    reads += wc.opcode == WcOpcode::rdma_read ? 1 : 0;
  }
  EXPECT_EQ(reads, 20u);
}

TEST_F(WeakNic, the_end_of_the_process_finds_everything_executed) {
  make_weak({.seed = 3});
  Memory from(a_nic, 4096), to(b_nic, 4096);
  from.fill(1);
  for (std::uint64_t id = 0; id < 60; ++id)
    ASSERT_EQ(a->write(id, from.sge(id * 64, 64), to.addr() + id * 64, to.key()), PostResult::ok);
  a_nic.adapter().hurry();
  EXPECT_EQ(to.part(0, 60 * 64), from.part(0, 60 * 64));
}

TEST_F(WeakNic, a_write_is_seen_in_parts_whose_words_are_whole) {
  make_weak({.seed = 1, .weaknesses = weak::bit(Weakness::lines)});
  constexpr std::size_t bytes = 512;
  Memory from(a_nic, bytes, all_access, Reach::mapped), to(b_nic, bytes + 8, all_access, Reach::mapped);
  const std::size_t offset = 8 - to.addr() % 8;
  int in_parts = 0, tail_first = 0;
  for (std::uint64_t round = 1; round <= 200; ++round) {
    auto* const words_out = reinterpret_cast<std::uint64_t*>(from.data());
    std::fill_n(words_out, bytes / 8, round * 0x0101010101010101ull);
    ASSERT_EQ(a->write(round, from.sge(0, bytes), to.addr() + offset, to.key()), PostResult::ok);
    std::optional<WorkCompletion> wc;
    bool mixed = false, tail = false;
    while (!(wc = look(*a))) {
      const auto* const words_in = reinterpret_cast<std::uint64_t*>(to.data() + offset);
      std::size_t arrived = 0;
      for (std::size_t i = 0; i < bytes / 8; ++i) {
        const std::uint64_t word = words_in[i];
        const bool is_new = word == round * 0x0101010101010101ull;
        EXPECT_TRUE(is_new || word == (round - 1) * 0x0101010101010101ull) << "a torn word";
        arrived += is_new ? 1 : 0;
      }
      mixed |= arrived != 0 && arrived != bytes / 8;
      tail |= words_in[bytes / 8 - 1] != words_in[0] && words_in[0] == (round - 1) * 0x0101010101010101ull;
    }
    in_parts += mixed ? 1 : 0;
    tail_first += tail ? 1 : 0;
    ASSERT_TRUE(completed(wc, round));
    EXPECT_EQ(std::memcmp(to.data() + offset, from.data(), bytes), 0);
  }
  EXPECT_GT(in_parts, 10);
  EXPECT_GT(tail_first, 5);
}

TEST_F(WeakNic, datagrams_are_lost_only_if_asked_for) {
  for (const bool asked : {false, true}) {
    Nic& nic = host.add_nic();
    const std::uint32_t loss = asked ? weak::bit(Weakness::datagram_loss) : 0;
    nic.adapter().set_weak({.seed = 1, .weaknesses = weak::level_1() | loss});
    Endpoint from(nic, {.type = QpType::ud}), to(nic, {.type = QpType::ud});
    for (Endpoint* end : {&from, &to}) end->to_rts(Qpn());
    Memory memory(nic, 256);
    std::size_t came = 0;
    for (std::uint64_t id = 0; id < 500; ++id) {
      ASSERT_EQ(to.recv(id, {memory.sge(0, 128)}), PostResult::ok);
      SendRequest request{.wr_id = id, .opcode = SendOpcode::send, .flags = send_flag::signaled};
      request.datagram = {.destination = to.qpn(), .qkey = 0x1234, .path = nullptr};
      ASSERT_EQ(from.post(request, {memory.sge(128, 64)}), PostResult::ok);
      EXPECT_TRUE(completed(wait(from), id));
      came += Endpoint::drain(to.recv_cq()).size();
      if (came != id + 1 && asked) {
        SUCCEED();
        break;
      }
    }
    EXPECT_EQ(came == 500, !asked);
  }
}

class LitmusRun : public WeakNic {
 public:
  explicit LitmusRun(const Plan& plan) : random_(plan.seed) { make_weak(plan); }
  std::string outcome(const Litmus& litmus);

 private:
  void TestBody() override {}
  std::uint64_t& word(Word which) {
    Memory& memory = which <= Word::w ? local_ : remote_;
    return *reinterpret_cast<std::uint64_t*>(memory.data() + at(which));
  }
  static std::size_t at(Word which) { return static_cast<std::size_t>(which) * line; }
  void run(const Instruction&, std::string& loaded);

  std::mt19937_64 random_;

  Memory local_{a_nic, words* line, all_access, Reach::mapped},
      remote_{b_nic, words* line, all_access, Reach::mapped};
};

void LitmusRun::run(const Instruction& instruction, std::string& loaded) {
  const bool puts = instruction.what == Do::put || instruction.what == Do::put_fenced;
  switch (instruction.what) {
    case Do::put:
    case Do::put_fenced:
    case Do::get: {
      const Word mine = puts ? instruction.from : instruction.to,
                 theirs = puts ? instruction.to : instruction.from;
      SendRequest request{.wr_id = 1, .opcode = puts ? SendOpcode::rdma_write : SendOpcode::rdma_read};
      request.flags = send_flag::signaled | (instruction.what == Do::put_fenced ? send_flag::fence : 0);
      request.remote_addr = remote_.addr() + at(theirs);
      request.rkey = remote_.key();
      ASSERT_EQ(a->post(request, {local_.sge(at(mine), 8)}), PostResult::ok);
      return;
    }
    case Do::poll:
      ASSERT_EQ(wait(*a).status, WcStatus::success);
      return;
    case Do::store_1:
      word(instruction.to) = 1;
      return;
    case Do::load:
      loaded += std::to_string(word(instruction.from));
      return;
  }
}

std::string LitmusRun::outcome(const Litmus& litmus) {
  for (std::size_t i = 0; i < words; ++i) {
    for (Memory* memory : {&local_, &remote_})
      *reinterpret_cast<std::uint64_t*>(memory->data() + at(static_cast<Word>(i))) =
          static_cast<std::uint64_t>(litmus.start[i]);
  }
  std::string loaded;
  std::size_t done = 0, seen = 0;
  while (done != litmus.initiator.size() || seen != litmus.target.size()) {
    const bool target = done == litmus.initiator.size() || random_() % 3 == 0;
    if (target && seen == litmus.target.size()) continue;
    run(target ? litmus.target[seen++] : litmus.initiator[done++], loaded);
    if (random_() % 4 == 0) host.advance(random_() % 100'000);
  }
  host.advance(50'000'000);
  Endpoint::drain(a->send_cq());
  return loaded.empty() ? std::to_string(word(litmus.shown)) : loaded;
}

TEST(WeakLitmus, every_allowed_outcome_is_seen_and_no_other) {
  for (const Litmus& litmus : litmus_tests()) {
    SCOPED_TRACE(litmus.name);
    std::set<std::string> seen;
    for (const std::uint64_t seed : {1, 2}) {
      LitmusRun run({.seed = seed});
      for (int round = 0; round < 1000; ++round) seen.insert(run.outcome(litmus));
    }
    EXPECT_EQ(seen, litmus.allowed);
  }
}

TEST(WeakLitmus, without_weaknesses_a_program_has_one_outcome) {
  for (const Litmus& litmus : litmus_tests()) {
    if (!litmus.target.empty()) continue;  // when the target looks is chosen, too
    SCOPED_TRACE(litmus.name);
    std::set<std::string> seen;
    LitmusRun run({.seed = 1, .weaknesses = 0});
    for (int round = 0; round < 100; ++round) seen.insert(run.outcome(litmus));
    EXPECT_EQ(seen.size(), 1u);
  }
}

}  // namespace
}  // namespace weir::rnic::test

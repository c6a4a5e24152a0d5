// A neighbour's bugs: whatever a target's shared words contain, neither its initiator nor its
// owner crashes, accesses memory outside the target's segment and regions (AddressSanitizer checks
// this), or loops forever.
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

enum class Victim { own_receives, shared_receives, datagrams };
struct Case {
  const char* name;
  Victim victim;
};

class Corruption : public TwoNics, public testing::WithParamInterface<Case> {
 protected:
  // Offsets of the target's shared words: its contexts, and the beginning of its rings.
  std::vector<std::uint32_t*> words_of(Endpoint& target, SharedReceiveQueue* srq) {
    SegmentHeader& header = b_nic.adapter().segment().header();
    std::vector<std::uint32_t*> words;
    const auto add = [&](void* from, std::size_t bytes) {
      for (std::size_t at = 0; at < bytes; at += 4)
        words.push_back(reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(from) + at));
    };
    QpContext& qp = header.qps[target.qpn().index()];
    add(&qp, sizeof qp);
    add(&header.cqs[target.recv_cq().index()], 64);
    add(&header.multicast_used, sizeof header.multicast_used);
    if (srq != nullptr) {
      add(&srq->context(), sizeof(SrqContext));
      add(b_nic.adapter().segment().base() + srq->context().ring_offset, 64);
      add(b_nic.adapter().segment().base() + srq->context().wqe_offset, 256);
    } else {
      add(b_nic.adapter().segment().base() + qp.rq_offset, 256);
    }
    return words;
  }
  std::uint32_t nonsense() {
    static constexpr std::uint32_t favourites[] = {0,          1,          0x7fffffff, 0x80000000,
                                                   0xffffffff, 0xfffffff0, 4096};
    return random() % 2 == 0 ? favourites[random() % std::size(favourites)]
                             : static_cast<std::uint32_t>(random());
  }

  std::mt19937 random{20};
};
INSTANTIATE_TEST_SUITE_P(Of, Corruption,
                         testing::Values(Case{"own_receives", Victim::own_receives},
                                         Case{"shared_receives", Victim::shared_receives},
                                         Case{"datagrams", Victim::datagrams}),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(Corruption, of_shared_words_does_not_harm_the_initiator) {
  const Victim victim = GetParam().victim;
  Memory from(a_nic, 20'000), to(b_nic, 20'000);
  for (int round = 0; round < 1500; ++round) {
    SCOPED_TRACE(round);
    SharedReceiveQueue* srq =
        victim == Victim::shared_receives ? b_nic.adapter().create_srq(pd, 16, 2) : nullptr;
    const QpType type = victim == Victim::datagrams ? QpType::ud : QpType::rc;
    {
      Endpoint sender(a_nic, {.type = type, .timeout = 8, .retry_cnt = 0, .rnr_retry = 0});
      Endpoint target(b_nic, {.type = type, .srq = srq});
      connect(sender, target);
      const Sge half = to.sge(0, 10'000);
      for (std::uint64_t i = 0; i < 8; ++i) {
        if (srq != nullptr)
          (void)srq->post(i, {&half, 1});
        else
          (void)target.recv(i, {half});
      }
      const auto words = words_of(target, srq);
      std::vector<std::pair<std::uint32_t*, std::uint32_t>> before;
      for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
        std::uint32_t* word = words[random() % words.size()];
        before.emplace_back(word, *word);
        *word = nonsense();
      }
      for (std::uint64_t i = 0; i < 6; ++i) {
        const std::size_t length = i % 2 == 0 ? 30 : 3000 + 3000 * (i % 3);
        const Sge sge = from.sge(0, type == QpType::ud ? std::min<std::size_t>(length, 4096) : length);
        (void)sender.post(
            {.wr_id = i, .flags = send_flag::signaled, .datagram = {target.qpn(), 0x1234, nullptr}}, {sge});
        if (type == QpType::rc) (void)sender.write(i, sge, to.addr(), to.key());
      }
      host.advance(10'000'000'000);
      Endpoint::drain(sender.send_cq());
      // The owner trusts what only it writes; it gets its words back before it goes on.
      for (auto entry = before.rbegin(); entry != before.rend(); ++entry) *entry->first = entry->second;
      settle();
    }
    if (srq != nullptr) b_nic.adapter().destroy(srq);
  }
}

// All but the words that name processes inside: the target waits for those while they live.
TEST_P(Corruption, of_shared_words_does_not_harm_the_owner) {
  const Victim victim = GetParam().victim;
  const QpType type = victim == Victim::datagrams ? QpType::ud : QpType::rc;
  Memory from(a_nic, 20'000), to(b_nic, 20'000);
  for (int round = 0; round < 1500; ++round) {
    SCOPED_TRACE(round);
    SharedReceiveQueue* srq =
        victim == Victim::shared_receives ? b_nic.adapter().create_srq(pd, 16, 2) : nullptr;
    {
      Endpoint sender(a_nic, {.type = type, .timeout = 8, .retry_cnt = 0, .rnr_retry = 0});
      Endpoint target(b_nic, {.type = type, .srq = srq});
      connect(sender, target);
      const Sge half = to.sge(0, 10'000);
      const auto post_some = [&] {
        for (std::uint64_t i = 0; i < 4; ++i) {
          if (srq != nullptr)
            (void)srq->post(i, {&half, 1});
          else
            (void)target.recv(i, {half});
        }
      };
      const auto send_some = [&] {
        for (std::uint64_t i = 0; i < 3; ++i)
          (void)sender.post({.wr_id = i, .datagram = {target.qpn(), 0x1234, nullptr}},
                            {from.sge(0, 30 + 1000 * i)});
      };
      post_some();
      send_some();
      QpContext& context = b_nic.adapter().segment().header().qps[target.qpn().index()];
      auto words = words_of(target, srq);
      std::erase(words, reinterpret_cast<std::uint32_t*>(&context.hazard));
      std::erase(words, reinterpret_cast<std::uint32_t*>(&context.datagram_senders));
      for (std::uint64_t n = 1 + random() % 3; n > 0; --n) *words[random() % words.size()] = nonsense();

      (void)target.recv_cq().unpolled();
      WorkCompletion completion;
      for (int polls = 0; polls < 32; ++polls) (void)target.recv_cq().poll({&completion, 1});
      post_some();
      send_some();
      if (round % 3 != 0) target.modify(round % 3 == 1 ? QpState::err : QpState::reset);
      for (int polls = 0; polls < 32; ++polls) (void)target.recv_cq().poll({&completion, 1});
      host.advance(10'000'000'000);
      settle();
    }
    if (srq != nullptr) b_nic.adapter().destroy(srq);
  }
}

}  // namespace
}  // namespace weir::rnic::test

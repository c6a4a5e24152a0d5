// Receive-side scaling: which work queue gets a frame, and what happens to the frame in each
// state of the work queue.
#include "rnic/ethernet/receive_side_scaling.hpp"

#include <algorithm>

#include "frames.hpp"
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

constexpr ToeplitzKey some_key = [] {
  ToeplitzKey key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i * 37 + 11);
  return key;
}();

// A work queue with a CQ of its own, or one that it shares.
class WorkQueue {
 public:
  explicit WorkQueue(Nic& nic, CompletionQueue* shared = nullptr)
      : nic_(nic), own_cq_(shared == nullptr ? nic.adapter().create_cq(1024, 1) : nullptr) {
    QpConfig config;
    config.type = QpType::work_queue;
    config.pd = pd;
    config.recv_cq = shared != nullptr ? shared : own_cq_;
    config.caps = {.max_recv_wr = 64, .max_recv_sge = 2};
    qp_ = nic.adapter().create_qp(config);
    modify(QpState::rtr);
  }
  ~WorkQueue() {
    nic_.adapter().destroy(qp_);
    if (own_cq_ != nullptr) nic_.adapter().destroy(own_cq_);
  }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  QueuePair& qp() { return *qp_; }
  std::uint32_t index() const { return qp_->qpn().index(); }
  CompletionQueue& cq() { return *qp_->config().recv_cq; }
  void modify(QpState to) { qp_->modify(to, {}); }
  PostResult recv(std::uint64_t id, const Sge& sge) {
    const std::lock_guard lock(qp_->receive_lock());
    const PostResult result = qp_->post_recv(id, {&sge, 1});
    qp_->recv_doorbell();
    return result;
  }
  std::size_t received() {
    const auto completions = Endpoint::drain(cq());
    return static_cast<std::size_t>(
        std::ranges::count(completions, WcStatus::success, &WorkCompletion::status));
  }

 private:
  Nic& nic_;
  CompletionQueue* own_cq_;
  QueuePair* qp_;
};
using WorkQueues = std::vector<std::unique_ptr<WorkQueue>>;

// A queue pair that spreads over `entries`, with a rule that leads every frame to it.
class Spreader {
 public:
  Spreader(Nic& nic, std::vector<std::uint32_t> entries, std::uint32_t fields) : nic_(nic) {
    QpConfig config;
    config.type = QpType::rss;
    config.pd = pd;
    config.rss = {.hash = {fields, some_key}, .queues = std::move(entries)};
    qp_ = nic.adapter().create_qp(config);
    EXPECT_TRUE(nic.adapter().steering().add(qp_->qpn().index(), {}));
  }
  ~Spreader() { nic_.adapter().destroy(qp_); }
  Spreader(const Spreader&) = delete;
  Spreader& operator=(const Spreader&) = delete;
  QueuePair& qp() { return *qp_; }

 private:
  Nic& nic_;
  QueuePair* qp_;
};

class ReceiveSideScaling : public TwoNics {
 protected:
  static std::unique_ptr<Endpoint> end(Nic& nic) {
    auto made = std::make_unique<Endpoint>(nic, EndpointOptions{.type = QpType::raw_packet});
    made->to_rts(Qpn());
    return made;
  }
  WorkQueues work_queues(std::size_t count, CompletionQueue* shared = nullptr, int receives = 16) {
    WorkQueues made;
    for (std::size_t i = 0; i < count; ++i) {
      made.push_back(std::make_unique<WorkQueue>(b_nic, shared));
      for (int id = 0; id < receives; ++id)
        EXPECT_EQ(made.back()->recv(static_cast<std::uint64_t>(id), into.all()), PostResult::ok);
    }
    return made;
  }
  static std::vector<std::uint32_t> indices(const WorkQueues& queues) {
    std::vector<std::uint32_t> all;
    for (const auto& queue : queues) all.push_back(queue->index());
    return all;
  }
  void send(Endpoint& by, const std::vector<std::byte>& bytes) {
    Memory from(by.nic(), bytes.size());
    std::ranges::copy(bytes, from.data());
    ASSERT_EQ(by.send(5, from.all()), PostResult::ok);
    EXPECT_TRUE(completed(by.poll_send(), 5));
  }
  void send(const FrameShape& shape) { send(*sender, frame(shape)); }
  static std::size_t entry_of(const FrameShape& shape, std::uint32_t fields, std::size_t entries) {
    return rx_hash({fields, some_key}, frame_key(frame(shape))).value_or(0) % entries;
  }

  Memory into{b_nic, 8192};
  std::unique_ptr<Endpoint> sender = end(a_nic);
};

TEST_F(ReceiveSideScaling, leads_each_frame_to_the_work_queue_of_its_hash) {
  const WorkQueues queues = work_queues(4);
  const Spreader spreader(b_nic, indices(queues), rx_field::ipv4);
  std::array<int, 4> frames{};
  for (std::uint8_t address = 1; address <= 32; ++address) {
    const FrameShape shape{.host = address};
    const std::size_t entry = entry_of(shape, rx_field::ipv4, queues.size());
    send(shape);
    for (std::size_t i = 0; i < queues.size(); ++i)
      EXPECT_EQ(queues[i]->received(), i == entry) << int{address};
    ++frames[entry];
  }
  for (const int count : frames) EXPECT_GT(count, 0) << "32 addresses leave no queue idle";
}

TEST_F(ReceiveSideScaling, keeps_the_frames_of_a_flow_together) {
  const WorkQueues queues = work_queues(4);
  const Spreader spreader(b_nic, indices(queues), rx_field::ipv4 | rx_field::udp);
  const FrameShape shape{.host = 9, .source_port = 4321};
  for (int i = 0; i < 5; ++i) send(shape);
  EXPECT_EQ(queues[entry_of(shape, rx_field::ipv4 | rx_field::udp, 4)]->received(), 5u);
}

TEST_F(ReceiveSideScaling, leads_frames_without_the_fields_to_the_first_entry) {
  for (const FrameShape& shape : {FrameShape{.ip = 6}, FrameShape{.ip = 0}, FrameShape{.protocol = 17},
                                  FrameShape{.protocol = 6, .fragment = 0x2000}}) {
    const WorkQueues queues = work_queues(4);
    const Spreader spreader(b_nic, indices(queues), rx_field::ipv4 | rx_field::tcp);
    for (std::uint8_t address = 1; address <= 8; ++address) {
      FrameShape of_host = shape;
      of_host.host = address;
      send(of_host);
    }
    EXPECT_EQ(queues[0]->received(), 8u);
  }
}

TEST_F(ReceiveSideScaling, may_have_a_work_queue_in_many_entries) {
  const WorkQueues queues = work_queues(2);
  const std::uint32_t heavy = queues[0]->index(), light = queues[1]->index();
  const Spreader spreader(b_nic, {heavy, heavy, light, heavy}, rx_field::source_ipv4);
  std::size_t to_light = 0;
  for (std::uint8_t address = 1; address <= 16; ++address) {
    send({.host = address});
    to_light += entry_of({.host = address}, rx_field::source_ipv4, 4) == 2;
  }
  EXPECT_EQ(queues[1]->received(), to_light);
  EXPECT_EQ(queues[0]->received(), 16 - to_light);
}

TEST_F(ReceiveSideScaling, completes_a_receive_of_the_work_queue_with_the_whole_frame) {
  const WorkQueues queues = work_queues(1);
  const Spreader spreader(b_nic, indices(queues), 0);
  const std::vector<std::byte> bytes = frame({.payload = 900});
  send(*sender, bytes);
  const auto wc = Endpoint::poll(queues[0]->cq());
  ASSERT_TRUE(completed(wc, 0));
  EXPECT_EQ(wc->opcode, WcOpcode::recv);
  EXPECT_EQ(wc->qpn, queues[0]->qp().qpn().value())
      << "the work queue's number, not the spreading queue pair's";
  EXPECT_EQ(wc->byte_len, bytes.size());
  EXPECT_FALSE(wc->has_grh);
  EXPECT_EQ(into.part(0, bytes.size()), bytes);
}

TEST_F(ReceiveSideScaling, has_work_queues_that_share_a_completion_queue) {
  CompletionQueue* const cq = b_nic.adapter().create_cq(1024, 1);
  {
    const WorkQueues queues = work_queues(8, cq);
    const Spreader spreader(b_nic, indices(queues), rx_field::ipv4);
    cq->arm(Armed::next);
    std::vector<std::uint32_t> expected, seen;
    for (std::uint8_t address = 1; address <= 16; ++address) {
      send({.host = address});
      expected.push_back(queues[entry_of({.host = address}, rx_field::ipv4, 8)]->qp().qpn().value());
    }
    settle();
    EXPECT_EQ(b_nic.channel_events(1), 1) << "armed once";
    for (const WorkCompletion& wc : Endpoint::drain(*cq)) seen.push_back(wc.qpn);
    std::ranges::sort(expected);
    std::ranges::sort(seen);
    EXPECT_EQ(seen, expected);
  }
  b_nic.adapter().destroy(cq);
}

TEST_F(ReceiveSideScaling, reaches_work_queues_of_the_senders_own_process) {
  const WorkQueues queues = work_queues(2);
  const Spreader spreader(b_nic, indices(queues), rx_field::ipv4);
  send(*end(b_nic), frame());
  EXPECT_EQ(queues[0]->received() + queues[1]->received(), 1u);
}

TEST_F(ReceiveSideScaling, stands_beside_queue_pairs_that_receive_themselves) {
  const WorkQueues queues = work_queues(2);
  const Spreader first(b_nic, indices(queues), rx_field::ipv4), second(b_nic, {queues[1]->index()}, 0);
  auto plain = end(b_nic);
  ASSERT_EQ(plain->recv(3, {into.all()}), PostResult::ok);
  ASSERT_TRUE(b_nic.adapter().steering().add(plain->qpn().index(), {}));
  send({});
  EXPECT_TRUE(completed(plain->poll_recv(), 3));
  EXPECT_EQ(queues[0]->received() + queues[1]->received(), 2u) << "one from each";
}

TEST_F(ReceiveSideScaling, loses_what_comes_to_a_work_queue_without_a_receive_and_counts_it_there) {
  const WorkQueues queues = work_queues(1, nullptr, 1);
  const Spreader spreader(b_nic, indices(queues), 0);
  for (int i = 0; i < 3; ++i) send({});
  EXPECT_EQ(queues[0]->received(), 1u);
  EXPECT_EQ(queues[0]->qp().counters().datagrams_dropped.read(), 2u);
}

TEST_F(ReceiveSideScaling, loses_what_comes_to_a_work_queue_that_is_not_ready) {
  for (const QpState state : {QpState::reset, QpState::err}) {
    const WorkQueues queues = work_queues(1);
    const Spreader spreader(b_nic, indices(queues), 0);
    queues[0]->modify(state);
    Endpoint::drain(queues[0]->cq());
    send({});
    EXPECT_EQ(queues[0]->received(), 0u);
  }
}

TEST_F(ReceiveSideScaling, flushes_the_receives_of_a_work_queue_in_error_behind_what_has_come) {
  const WorkQueues queues = work_queues(1, nullptr, 2);
  const Spreader spreader(b_nic, indices(queues), 0);
  send({});
  queues[0]->modify(QpState::err);
  EXPECT_EQ(queues[0]->recv(7, into.all()), PostResult::ok);
  EXPECT_TRUE(completed(Endpoint::poll(queues[0]->cq()), 0));
  EXPECT_TRUE(completed(Endpoint::poll(queues[0]->cq()), 1, WcStatus::wr_flush_err));
  EXPECT_TRUE(completed(Endpoint::poll(queues[0]->cq()), 7, WcStatus::wr_flush_err));
}

TEST_F(ReceiveSideScaling, begins_anew_with_a_work_queue_that_was_reset) {
  const WorkQueues queues = work_queues(1);
  const Spreader spreader(b_nic, indices(queues), 0);
  send({});
  queues[0]->modify(QpState::err);
  queues[0]->modify(QpState::reset);
  EXPECT_FALSE(Endpoint::poll(queues[0]->cq())) << "what was posted and what has come is forgotten";
  EXPECT_EQ(queues[0]->recv(8, into.all()), PostResult::bad_state);
  queues[0]->modify(QpState::rtr);
  ASSERT_EQ(queues[0]->recv(9, into.all()), PostResult::ok);
  send({});
  EXPECT_TRUE(completed(Endpoint::poll(queues[0]->cq()), 9));
}

TEST_F(ReceiveSideScaling, has_no_queues_of_its_own) {
  const WorkQueues queues = work_queues(1);
  Spreader spreader(b_nic, indices(queues), 0);
  PostResult result;
  spreader.qp().begin_posting();
  EXPECT_EQ(spreader.qp().append({.opcode = SendOpcode::send}, result), nullptr);
  spreader.qp().abort_posting();
  EXPECT_EQ(result, PostResult::bad_state);
  EXPECT_EQ(spreader.qp().post_recv(1, {}), PostResult::bad_state);
}

TEST_F(ReceiveSideScaling, ends_with_its_queue_pair_and_the_rules_of_that) {
  const WorkQueues queues = work_queues(1);
  auto heir = end(b_nic);
  ASSERT_EQ(heir->recv(3, {into.all()}), PostResult::ok);
  {
    const Spreader spreader(b_nic, indices(queues), 0);
  }
  ASSERT_TRUE(b_nic.adapter().steering().add(heir->qpn().index(), {.priority = 1, .value = {}, .mask = {}}));
  send({});
  EXPECT_EQ(queues[0]->received(), 0u);
  EXPECT_TRUE(completed(heir->poll_recv(), 3)) << "a rule of nobody's would have come first";
}

TEST_F(ReceiveSideScaling, is_the_only_way_to_a_work_queue) {
  const WorkQueues queues = work_queues(1);
  ASSERT_TRUE(b_nic.adapter().steering().add(queues[0]->index(), {}));
  send({});
  EXPECT_EQ(queues[0]->received(), 0u);
}

TEST_F(ReceiveSideScaling, voids_what_a_killed_sender_had_begun) {
  const WorkQueues queues = work_queues(1);
  const Spreader spreader(b_nic, indices(queues), 0);
  const QpContext& context = b_nic.adapter().segment().header().qps[queues[0]->index()];
  auto* slots = b_nic.adapter().segment().at<DatagramSlot>(context.cqe_offset);
  auto claim = SlotClaim::unpack(slots[0].claim.load());
  claim.state = SlotState::claimed;
  claim.claimer = a_nic.slot();
  slots[0].claim = claim.pack();
  ASSERT_TRUE(b_nic.peer(a_nic.slot(), HostPort::Wait::yes)) << "or nobody tells it of the end";
  host.kill(a_nic);
  settle();
  const auto wc = Endpoint::poll(queues[0]->cq());
  ASSERT_TRUE(completed(wc, 0));
  EXPECT_EQ(wc->byte_len, 0u);
}

TEST_F(ReceiveSideScaling, keeps_no_deregistration_waiting_for_a_sender_that_was_killed_inside) {
  const WorkQueues queues = work_queues(1);
  Spreader spreader(b_nic, indices(queues), 0);
  SegmentHeader& header = b_nic.adapter().segment().header();
  for (const std::uint32_t index : {queues[0]->index(), spreader.qp().qpn().index()})
    header.qps[index].datagram_senders = 1;
  Memory(b_nic, 64).deregister();
  for (const std::uint32_t index : {queues[0]->index(), spreader.qp().qpn().index()})
    header.qps[index].datagram_senders = 0;
}

// A neighbour's bugs: whatever stands in the shared words, the sender neither crashes nor touches memory
// outside the segment (AddressSanitizer watches).
TEST_F(ReceiveSideScaling, scribbled_words_do_not_harm_the_sender) {
  std::mt19937 random{44};
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    const WorkQueues queues = work_queues(2, nullptr, 2);
    Spreader spreader(b_nic, indices(queues), rx_field::ipv4);
    Segment& segment = b_nic.adapter().segment();
    QpContext& context = segment.header().qps[spreader.qp().qpn().index()];
    std::vector<std::uint32_t*> words;
    const auto add = [&](void* from, std::size_t bytes) {
      for (std::size_t at = 0; at < bytes / 4; ++at) words.push_back(static_cast<std::uint32_t*>(from) + at);
    };
    add(&context, cache_line);
    add(segment.base() + context.rq_offset, sizeof(RxHash));
    for (int i = 0; i < 8; ++i) add(segment.base() + context.cqe_offset, 2 * sizeof(IndirectionEntry));
    add(&segment.header().qps[queues[0]->index()], cache_line);
    std::vector<std::pair<std::uint32_t*, std::uint32_t>> before;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
      constexpr std::uint32_t favourites[] = {0, 1, 2, max_qps - 1, max_qps, 0x7fffffff, 0xffffffff};
      std::uint32_t* const word = words[random() % words.size()];
      before.emplace_back(word, *word);
      *word = random() % 2 == 0 ? favourites[random() % std::size(favourites)]
                                : static_cast<std::uint32_t>(random());
    }
    for (std::uint8_t address = 1; address <= 4; ++address) send({.host = address});
    // The owner trusts what only it writes; it gets its words back before it goes on.
    for (auto entry = before.rbegin(); entry != before.rend(); ++entry) *entry->first = entry->second;
    settle();
  }
}

}  // namespace
}  // namespace weir::rnic::test

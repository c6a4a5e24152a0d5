// A channel's accounts: the windows granted and received, and the work requests in progress. A receive must
// be posted for every SEND that arrives, however long each is delayed.
#include "rdma/channel/channel_books.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "rdma/channel/channel_wire.hpp"

namespace weir::rdma {
namespace {

TEST(Grants, a_frame_beyond_the_window_is_refused) {
  Grants grants(2);
  EXPECT_TRUE(grants.take());
  EXPECT_TRUE(grants.take());
  EXPECT_FALSE(grants.take());
  grants.posted_again(1);
  EXPECT_FALSE(grants.take()) << "posted, but not given back";
  EXPECT_EQ(grants.give(), 1u);
  EXPECT_TRUE(grants.take());
}

TEST(Grants, an_explicit_acknowledgement_waits_for_half_the_window) {
  Grants grants(5);
  for (int i = 0; i < 2; ++i) {
    grants.take();
    grants.posted_again(1);
    EXPECT_FALSE(grants.ack_wanted());
  }
  grants.take();
  grants.posted_again(1);
  EXPECT_TRUE(grants.ack_wanted());
  EXPECT_EQ(grants.give(), 3u);
  EXPECT_FALSE(grants.ack_wanted());
}

TEST(Grants, a_peer_that_has_nothing_left_gets_what_there_is) {
  Grants grants(8);
  for (int i = 0; i < 8; ++i) grants.take();
  EXPECT_FALSE(grants.ack_wanted()) << "there is nothing to give";
  grants.posted_again(1);
  EXPECT_TRUE(grants.ack_wanted());
  grants.give();
  grants.posted_again(1);
  EXPECT_FALSE(grants.ack_wanted()) << "it can send, and so will be answered";
}

TEST(Credits, more_than_was_spent_cannot_come_back) {
  Credits credits(3);
  EXPECT_FALSE(credits.returned(1));
  credits.spend();
  credits.spend();
  EXPECT_FALSE(credits.returned(3));
  EXPECT_TRUE(credits.returned(2));
  EXPECT_EQ(credits.left(), 3u);
}

TEST(SendRing, one_completion_stands_for_all_before_it) {
  SendRing<int> ring(8, 3);
  for (int i = 1; i <= 5; ++i) ring.posted(i, ring.must_signal());
  EXPECT_TRUE(ring.has_unsignalled());
  std::vector<int> done;
  EXPECT_TRUE(ring.completed([&](int entry) { done.push_back(entry); }));
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(ring.outstanding(), 2u);
  EXPECT_EQ(ring.room(), 6u);
}

TEST(SendRing, a_completion_of_nothing_is_noticed) {
  SendRing<int> ring(8, 3);
  EXPECT_FALSE(ring.completed([](int) {}));
}

TEST(SendRing, whoever_waits_for_room_has_a_signalled_request_outstanding) {
  std::mt19937 random(7);
  SendRing<int> ring(16, 8);
  int signalled = 0;
  for (int step = 0; step < 10'000; ++step) {
    if (ring.room() > 0 && random() % 3 != 0) {
      const bool signal = ring.must_signal();
      signalled += signal;
      ring.posted(step, signal);
    } else if (signalled > 0) {
      ASSERT_TRUE(ring.completed([](int) {}));
      --signalled;
    }
    if (ring.room() > 0) continue;
    ASSERT_GT(signalled, 0);
  }
}

TEST(ReusedQueue, keeps_order_while_it_grows_and_wraps) {
  std::mt19937 random(11);
  ReusedQueue<int> queue;
  std::deque<int> model;
  for (int i = 0; i < 10'000; ++i) {
    if (model.empty() || random() % 5 < 3 - (i > 5000)) {
      queue.push_back(i);
      model.push_back(i);
    } else {
      ASSERT_EQ(queue.take_front(), model.front());
      model.pop_front();
    }
    ASSERT_EQ(queue.size(), model.size());
    if (model.empty()) continue;
    ASSERT_EQ(queue[model.size() - 1], model.back());
  }
}

// Two ends take random steps: frames and explicit acknowledgements arrive in order but arbitrarily late, and
// each consumes one receive of the other end, which must be posted.
class Model {
 public:
  Model(std::uint32_t window, std::uint32_t depth, std::uint32_t seed)
      : ends_{End(window, depth), End(window, depth)}, depth_(depth), random_(seed) {}

  void step() {
    End& self = ends_[random_() % 2];
    End& peer = &self == &ends_[0] ? ends_[1] : ends_[0];
    switch (random_() % 6) {
      case 0:
      case 1:  // a frame, perhaps with an offer in it
        if (self.credits.left() == 0) return;
        self.credits.spend();
        transmit(self, peer, {true, self.offered < depth_ && random_() % 2 == 0});
        return;
      case 2:  // the device receives
        if (self.in_flight.empty()) return;
        receive(self, peer);
        return;
      case 3:  // the application releases a message, and its block is posted again
        if (self.held == 0) return;
        --self.held;
        ++self.posted;
        self.grants.posted_again(1);
        return;
      case 4:  // a READ completes
        if (self.to_fetch == 0) return;
        --self.to_fetch;
        ++self.fetched_due;
        return;
      default:
        if (self.fetched_due > 0 || self.grants.ack_wanted()) transmit(self, peer, {false, false});
    }
  }
  std::uint64_t received() const { return received_; }

 private:
  struct Send {
    bool data = false;
    bool offer = false;
    std::uint32_t credits = 0, fetched = 0;
  };
  struct End {
    End(std::uint32_t window, std::uint32_t depth)
        : grants(window),
          credits(window),
          posted(window + channel_wire::reserved_receives(static_cast<std::uint8_t>(depth))) {}
    Grants grants;
    Credits credits;
    std::uint32_t posted;
    std::uint32_t held = 0, offered = 0, to_fetch = 0, fetched_due = 0;
    std::deque<Send> in_flight;  // towards this end
  };

  void transmit(End& self, End& peer, Send send) {
    self.offered += send.offer;
    send.credits = self.grants.give();
    send.fetched = self.fetched_due;
    self.fetched_due = 0;
    peer.in_flight.push_back(send);
    // A device that does not wait must find a receive now.
    ASSERT_LE(peer.in_flight.size(), peer.posted) << "receiver not ready";
  }

  void receive(End& self, End&) {
    const Send send = self.in_flight.front();
    self.in_flight.pop_front();
    ++received_;
    ASSERT_GT(self.posted, 0u);
    --self.posted;
    ASSERT_TRUE(self.credits.returned(send.credits));
    ASSERT_LE(send.fetched, self.offered);
    self.offered -= send.fetched;
    if (send.data) {
      ASSERT_TRUE(self.grants.take());
      ++self.held;
      self.to_fetch += send.offer;
    } else {
      ++self.posted;
    }
  }

  std::array<End, 2> ends_;
  std::uint32_t depth_;
  std::mt19937 random_;
  std::uint64_t received_ = 0;
};

TEST(ChannelWindow, a_receive_is_posted_for_whatever_is_sent) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const std::uint32_t window : {1u, 2u, 3u, 5u, 25u})
    for (const std::uint32_t depth : {1u, 4u}) {
      Model model(window, depth, seed + window);
      for (int i = 0; i < 50'000 && !testing::Test::HasFatalFailure(); ++i) model.step();
      EXPECT_GT(model.received(), 1000u);
    }
}

}  // namespace
}  // namespace weir::rdma

// Random histories of one direction, checked byte for byte: both halves take steps in any order, the kernel's
// queue and the ring are models, and each byte that the receiver gets must be the next of the stream.
#include "sockets/carrier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <vector>

namespace weir::sockets {
namespace {

std::uint8_t byte_at(std::uint64_t position) {
  return static_cast<std::uint8_t>((position * 0x9E3779B97F4A7C15u) >> 56);
}

class Direction {
 public:
  Direction(std::uint64_t seed, std::uint64_t ring_bytes) : random_(seed), ring_(ring_bytes) {}

  void step() {
    if (pick(2) == 0)
      send_step();
    else
      receive_step();
  }

  void drain() {
    for (int i = 0; i < 100'000 && received_.received.load() < sent_.sent.load(); ++i) receive_step();
    EXPECT_EQ(received_.received.load(), sent_.sent.load());
  }

  std::uint64_t changes() const { return sender_.changes.load(); }
  std::uint64_t received() const { return received_.received.load(); }
  std::uint64_t held_ever() const { return held_ever_; }
  std::uint64_t handed_back() const { return handed_back_; }

 private:
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }

  void send_step() {
    Outgoing out(sent_, sender_, receiver_, ring_.size());
    switch (pick(8)) {
      case 0:
        if (out.may_enter_ring()) out.enter_ring();
        return;
      case 1:
        out.leave_ring();
        return;
      default:
        break;
    }
    const std::uint64_t wanted = 1 + pick(ring_.size());
    if (!out.by_ring()) {
      if (tcp_.size() > 4096) return;
      for (std::uint64_t i = 0; i < wanted; ++i) tcp_.push_back(byte_at(sent_.sent.load() + i));
      out.sent_tcp(wanted);
      return;
    }
    const auto room = out.room();
    ASSERT_NE(room, Outgoing::broken);
    const auto bytes = std::min(room, wanted);
    for (std::uint64_t i = 0; i < bytes; ++i)
      ring_[(out.place() + i) % ring_.size()] = byte_at(sent_.sent.load() + i);
    out.put(bytes);
  }

  void receive(std::uint8_t byte, std::uint64_t position) {
    ASSERT_EQ(byte, byte_at(position)) << "position " << position;
  }

  // The receiver leaves for good, as before an exec: nothing of the ring may be lost.
  void hand_back(Incoming& in) {
    receiver_.wants_tcp.store(1);
    Outgoing out(sent_, sender_, receiver_, ring_.size());
    if (out.by_ring()) {
      const auto from = out.first_unread();
      for (auto at = from; at < sent_.sent.load(); ++at, ++handed_back_)
        tcp_.push_back(ring_[at % ring_.size()]);
      out.leave_ring_at(from);
    }
    (void)in.next();
    receiver_.wants_tcp.store(0);
  }

  void receive_step() {
    Incoming in(received_, receiver_, sender_, ring_.size());
    if (reading_) {  // the second half of a read by TCP; the sender had its turns in between
      const auto most = *std::exchange(reading_, std::nullopt);
      const auto bytes = std::min<std::uint64_t>(most, tcp_.size());
      std::vector<std::uint8_t> read(tcp_.begin(), tcp_.begin() + static_cast<std::ptrdiff_t>(bytes));
      tcp_.erase(tcp_.begin(), tcp_.begin() + static_cast<std::ptrdiff_t>(bytes));
      const auto position = received_.received.load();
      const auto now = in.took_tcp(bytes);
      for (std::uint64_t i = 0; i < now; ++i) receive(read[i], position + i);
      held_.insert(held_.end(), read.begin() + static_cast<std::ptrdiff_t>(now), read.end());
      held_ever_ += bytes - now;
      return;
    }
    if (held_.empty() && pick(16) == 0) return hand_back(in);
    ASSERT_EQ(in.look().kind == Source::Kind::broken, false);
    const Source source = in.next();
    ASSERT_NE(source.kind, Source::Kind::broken);
    const std::uint64_t wanted = 1 + pick(2 * ring_.size());
    const auto position = received_.received.load();
    if (source.kind == Source::Kind::ring) {
      const auto bytes = std::min(source.bytes, wanted);
      for (std::uint64_t i = 0; i < bytes; ++i) receive(ring_[(in.place() + i) % ring_.size()], position + i);
      in.took_ring(bytes);
    } else if (!held_.empty()) {
      const auto bytes = std::min({source.bytes, wanted, std::uint64_t{held_.size()}});
      for (std::uint64_t i = 0; i < bytes; ++i) receive(held_[i], position + i);
      held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(bytes));
      in.took_held(bytes);
    } else {
      reading_ = std::min(source.bytes, wanted);
    }
  }

  std::mt19937_64 random_;
  std::vector<std::uint8_t> ring_;
  std::deque<std::uint8_t> tcp_;
  std::deque<std::uint8_t> held_;
  std::optional<std::uint64_t> reading_;
  EndState sent_{}, received_{};
  SenderWords sender_{};
  ReceiverWords receiver_{};
  std::uint64_t held_ever_ = 0, handed_back_ = 0;
};

TEST(Carrier, bytes_keep_their_order_over_random_changes) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::uint64_t changes = 0, held = 0, handed_back = 0;
  for (std::uint64_t run = 0; run < 200 && !::testing::Test::HasFatalFailure(); ++run) {
    Direction direction(seed + run, std::uint64_t{1} << (run % 8));
    for (int i = 0; i < 20'000 && !::testing::Test::HasFatalFailure(); ++i) direction.step();
    direction.drain();
    changes += direction.changes();
    held += direction.held_ever();
    handed_back += direction.handed_back();
  }
  // The histories are of no use if they never come to the rare cases.
  EXPECT_GT(changes, 100'000u);
  EXPECT_GT(held, 1000u);
  EXPECT_GT(handed_back, 1000u);
}

struct Nonsense {
  const char* what;
  std::uint64_t produced, changes, ring_from, tcp_from;
};

TEST(Carrier, nonsense_of_the_sender_is_broken) {
  for (const Nonsense& row : {Nonsense{"more changes than can be", 0, 3, 0, 0},
                              {"back in time", 0, 1, 5, 0},
                              {"more than the ring holds", 200, 1, 10, 0},
                              {"left before it began", 0, 2, 10, 5},
                              {"left far beyond the ring", 0, 2, 10, 500}}) {
    SCOPED_TRACE(row.what);
    EndState self{};
    self.received.store(10);
    SenderWords sender{};
    ReceiverWords receiver{};
    sender.produced.store(row.produced);
    sender.changes.store(row.changes);
    sender.ring_from.store(row.ring_from);
    sender.tcp_from.store(row.tcp_from);
    EXPECT_EQ(Incoming(self, receiver, sender, 64).next().kind, Source::Kind::broken);
    EXPECT_EQ(receiver.changes_seen.load(), 0u);
  }
}

TEST(Carrier, nonsense_of_the_receiver_is_broken) {
  for (const std::uint64_t consumed : {std::uint64_t{101}, ~std::uint64_t{0}}) {
    EndState self{};
    self.sent.store(100);
    SenderWords sender{};
    ReceiverWords receiver{};
    Outgoing out(self, sender, receiver, 64);
    ASSERT_TRUE(out.enter_ring());
    receiver.consumed.store(consumed);
    EXPECT_EQ(out.room(), Outgoing::broken);
  }
}

TEST(Carrier, ring_is_not_entered_before_all_changes_were_seen) {
  EndState self{}, peer{};
  SenderWords sender{};
  ReceiverWords receiver{};
  Outgoing out(self, sender, receiver, 64);
  ASSERT_TRUE(out.enter_ring());
  out.leave_ring();
  EXPECT_FALSE(out.may_enter_ring());
  Incoming(peer, receiver, sender, 64).next();
  EXPECT_TRUE(out.may_enter_ring());
}

TEST(Carrier, sender_that_left_the_ring_hands_back_what_was_not_read_unless_it_sent_since) {
  for (const bool sent_since : {false, true}) {
    EndState self{}, peer{};
    SenderWords sender{};
    ReceiverWords receiver{};
    Outgoing out(self, sender, receiver, 64);
    Incoming in(peer, receiver, sender, 64);
    EXPECT_FALSE(out.can_hand_back());
    ASSERT_TRUE(out.enter_ring());
    out.put(10);
    ASSERT_EQ(in.next(), (Source{Source::Kind::ring, 10}));
    in.took_ring(4);
    out.leave_ring();
    if (sent_since) out.sent_tcp(1);
    ASSERT_EQ(out.can_hand_back(), !sent_since);
    if (sent_since) continue;
    EXPECT_EQ(out.first_unread(), 4u);
    out.leave_ring_at(4);
    EXPECT_EQ(in.next(), (Source{Source::Kind::tcp, Incoming::no_limit}));
    EXPECT_FALSE(out.can_hand_back());
  }
}

TEST(Carrier, receiver_that_wants_tcp_keeps_the_sender_out) {
  EndState self{};
  SenderWords sender{};
  ReceiverWords receiver{};
  Outgoing out(self, sender, receiver, 64);
  receiver.wants_tcp.store(1);
  EXPECT_FALSE(out.may_enter_ring());
  EXPECT_FALSE(out.enter_ring());
  EXPECT_FALSE(out.by_ring());
}

}  // namespace
}  // namespace weir::sockets

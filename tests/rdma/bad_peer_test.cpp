// Peers that break the protocol, over plain verbs: each loses its own connection, with a typed error on our
// side, and does not affect a well-behaved connection through the same acceptor.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rdma/stream.hpp"
#include "tests/rdma/raw_peer.hpp"
#include "tests/rdma/stream_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::RawPeer;
using testing_support::StreamTest;

struct PeerTest : StreamTest {
  std::optional<Stream> victim;  // our end of the raw peer's connection
  std::optional<Acceptor> acceptor;
  std::optional<RawPeer> peer;

  void SetUp() override {
    StreamTest::SetUp();
    acceptor.emplace(listen({.receive_buffer_bytes = 8192}));
    peer.emplace([this] { io.poll(); });
    acceptor->async_accept([this](std::error_code failed, Stream stream) {
      ASSERT_FALSE(failed);
      victim.emplace(std::move(stream));
    });
    peer->connect(acceptor->local_endpoint());
    run_until([&] { return victim.has_value(); });
  }
  void TearDown() override {
    victim.reset();
    acceptor.reset();
    peer.reset();
  }
};

struct Crime {
  std::string name;
  Errc verdict;
  std::function<void(RawPeer&)> commit;
};

std::vector<std::byte> filled(std::size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}
void send_message(RawPeer& peer, const ControlMessage& message) { peer.send(encode(message)); }

const std::vector<Crime>& crimes() {
  static const std::vector<Crime> table = {
      {"half_a_control_message", Errc::bad_control_length, [](RawPeer& p) { p.send(filled(16, 0)); }},
      {"an_empty_control_message", Errc::bad_control_length, [](RawPeer& p) { p.send({}); }},
      {"a_control_message_too_long", Errc::bad_control_length, [](RawPeer& p) { p.send(filled(33, 0)); }},
      {"an_unknown_opcode", Errc::unknown_opcode, [](RawPeer& p) { p.send(filled(32, 0x7f)); }},
      {"a_buffer_of_length_0", Errc::bad_announcement,
       [](RawPeer& p) { send_message(p, RegisterXferMemory{0x1000, 0, 1}); }},
      {"a_buffer_that_wraps", Errc::bad_announcement,
       [](RawPeer& p) { send_message(p, RegisterXferMemory{~std::uint64_t{0} - 10, 4096, 1}); }},
      {"an_unknown_feature", Errc::unknown_feature,
       [](RawPeer& p) { send_message(p, SetClientFeature{0, 4}); }},
      {"an_immediate_beyond_the_buffer", Errc::immediate_beyond_buffer,
       [](RawPeer& p) { p.write_with_imm(p.announcement(), 0, 16, 8193); }},
      {"the_largest_immediate", Errc::immediate_beyond_buffer,
       [](RawPeer& p) { p.write_with_imm(p.announcement(), 0, 16, 0xffffffff); }},
      {"immediates_that_add_up_beyond_the_buffer", Errc::immediate_beyond_buffer,
       [](RawPeer& p) {
         const RegisterXferMemory to = p.announcement();
         p.write_with_imm(to, 0, 16, 8000);
         p.write_with_imm(to, 16, 16, 193);
       }},
  };
  return table;
}

struct BadPeer : PeerTest, testing::WithParamInterface<std::size_t> {};

TEST_P(BadPeer, loses_its_connection_and_nobody_else_does) {
  const Crime& crime = crimes()[GetParam()];
  SCOPED_TRACE(crime.name);
  auto [client, server] = connect_through(*acceptor);

  crime.commit(*peer);
  run_until([&] {
    peer->poll();
    return static_cast<bool>(victim->end());
  });
  EXPECT_EQ(victim->end(), crime.verdict) << victim->error().what;
  EXPECT_FALSE(victim->error().what.empty());
  peer->expect_disconnect();

  run_until([&] { return client.try_write(asio::buffer("still here", 10)) == 10; });
  run_until([&] { return server.readable().size() == 10; });
  EXPECT_FALSE(client.end());
  EXPECT_FALSE(server.end());
}

INSTANTIATE_TEST_SUITE_P(Crimes, BadPeer, testing::Range<std::size_t>(0, crimes().size()),
                         [](const auto& each) { return crimes()[each.param].name; });

// The bytes that a connection left in its receive buffers, however they got there.
struct Leaving {
  std::string name;
  // Makes the peer leave, and gets our end of its connection; gives the place of a buffer.
  std::function<const std::byte*(RawPeer&, Stream&)> leave;
};

const std::byte* await_bytes(RawPeer& peer, Stream& ours) {
  while (ours.readable().empty()) peer.poll();
  return ours.readable().data();
}

void fill_whole_buffer(RawPeer& peer) {
  std::ranges::fill(peer.memory().first(8192), std::byte{'s'});
  peer.write_with_imm(peer.announcement(), 0, 8192, 8192);
}

const std::vector<Leaving>& leavings() {
  static const std::vector<Leaving> table = {
      {"read_by_us",
       [](RawPeer& p, Stream& ours) {
         fill_whole_buffer(p);
         const std::byte* const place = await_bytes(p, ours);
         ours.consume(8192);
         return place;
       }},
      {"delivered_and_never_read",
       [](RawPeer& p, Stream& ours) {
         fill_whole_buffer(p);
         return await_bytes(p, ours);
       }},
      {"written_and_all_but_a_byte_never_delivered",
       [](RawPeer& p, Stream& ours) {
         std::ranges::fill(p.memory().first(8192), std::byte{'s'});
         p.write_with_imm(p.announcement(), 0, 8192, 1);
         return await_bytes(p, ours);
       }},
      {"in_both_buffers",
       [](RawPeer& p, Stream& ours) {
         fill_whole_buffer(p);
         fill_whole_buffer(p);  // announced, because the first one is full
         while (ours.stats().bytes_received < 16384) p.poll();
         return await_bytes(p, ours);
       }},
  };
  return table;
}

struct NextPeer : PeerTest, testing::WithParamInterface<std::size_t> {};

TEST_P(NextPeer, is_served_no_byte_that_the_peer_before_it_left) {
  const std::byte* const last_place = leavings()[GetParam()].leave(*peer, *victim);
  victim->close();
  peer->expect_disconnect();
  run_until([&] { return engine->stats().connections == 0; });
  victim.reset();

  RawPeer next([this] { io.poll(); });
  acceptor->async_accept([this](std::error_code failed, Stream stream) {
    ASSERT_FALSE(failed);
    victim.emplace(std::move(stream));
  });
  next.connect(acceptor->local_endpoint());
  run_until([&] { return victim.has_value(); });
  for (int buffer = 0; buffer < 2; ++buffer) {
    const RegisterXferMemory to = next.announcement();
    std::ranges::fill(next.memory().first(8), std::byte{'n'});
    next.write_with_imm(to, 0, 8, 8192);  // eight bytes, claiming 8,184 more
    const std::uint64_t wanted = 8192 * (std::uint64_t{1} + static_cast<std::uint64_t>(buffer));
    run_until([&] {
      next.poll();
      return victim->stats().bytes_received == wanted;
    });
  }
  std::vector<const std::byte*> places;
  for (int buffer = 0; buffer < 2; ++buffer) {
    const std::span<const std::byte> served = victim->readable();
    ASSERT_EQ(served.size(), 8192u);
    places.push_back(served.data());
    EXPECT_TRUE(std::ranges::all_of(served.first(8), [](std::byte b) { return b == std::byte{'n'}; }));
    EXPECT_TRUE(std::ranges::all_of(served.subspan(8), [](std::byte b) { return b == std::byte{0}; }));
    victim->consume(8192);
  }
  EXPECT_NE(std::ranges::find(places, last_place), places.end()) << "another block: this shows nothing";
  victim.reset();
}

INSTANTIATE_TEST_SUITE_P(Leavings, NextPeer, testing::Range<std::size_t>(0, leavings().size()),
                         [](const auto& each) { return leavings()[each.param].name; });

TEST_F(PeerTest, vanished_without_a_word_is_found_by_a_keepalive) {
  Acceptor patient = listen({.keepalive = std::chrono::milliseconds(5)});
  std::optional<Stream> kept;
  patient.async_accept([&](std::error_code failed, Stream stream) {
    ASSERT_FALSE(failed);
    kept.emplace(std::move(stream));
  });
  RawPeer silent([this] { io.poll(); });
  silent.connect(patient.local_endpoint());
  run_until([&] { return kept.has_value(); });
  silent.vanish();
  run_until([&] { return static_cast<bool>(kept->end()); });
  EXPECT_EQ(kept->error().code, Errc::connection_lost) << kept->error().what;
  EXPECT_FALSE(victim->end()) << "a peer that answers is kept";
}

TEST_F(PeerTest, writing_to_a_wild_address_ends_that_connection) {
  send_message(*peer, RegisterXferMemory{0xdead0000, 4096, 0x1234567});
  run_until([&] {
    peer->poll();
    return victim->try_write(asio::buffer("into the wild", 13)) > 0;
  });
  run_until([&] {
    peer->poll();
    return static_cast<bool>(victim->end());
  });
  EXPECT_EQ(victim->end(), Errc::remote_access) << victim->error().what;
}

TEST_F(PeerTest, a_write_beyond_our_buffer_ends_that_connection) {
  const RegisterXferMemory to = peer->announcement();
  peer->write_with_imm(to, 8192, 16, 16);  // the pool's memory continues there, but the region ends
  run_until([&] {
    peer->poll();
    return static_cast<bool>(victim->end());
  });
  EXPECT_TRUE(victim->readable().empty());
}

TEST_F(PeerTest, a_closed_connections_key_opens_nothing) {
  const RegisterXferMemory to = peer->announcement();
  auto [client, server] = connect_through(*acceptor);
  client.close();  // its server end's buffer returns to the pool
  server.close();
  run_until([&] { return engine->stats().connections == 1; });
  peer->write(to, 0, 16);  // our own key still works
  peer->poll();
  EXPECT_TRUE(peer->failures().empty());
  victim->close();
  peer->expect_disconnect();
}

TEST_F(PeerTest, features_are_answered_when_asked_and_only_then) {
  send_message(*peer, GetServerFeature{.select = 5, .features = 0});
  send_message(*peer, SetClientFeature{.select = 5, .features = 0});
  peer->announcement();  // always our first message
  EXPECT_EQ(parse(peer->control()), ControlMessage(GetServerFeature{.select = 5, .features = 0}));
  EXPECT_FALSE(victim->end());
}

TEST_F(PeerTest, one_immediate_stands_for_several_writes) {
  const RegisterXferMemory to = peer->announcement();
  std::ranges::fill(peer->memory().first(512), std::byte{'a'});
  peer->write(to, 0, 128);
  peer->write(to, 128, 256);
  peer->write_with_imm(to, 384, 128, 512);
  run_until([&] {
    peer->poll();
    return !victim->readable().empty();
  });
  EXPECT_EQ(victim->readable().size(), 512u);
  EXPECT_TRUE(std::ranges::all_of(victim->readable(), [](std::byte b) { return b == std::byte{'a'}; }));
}

TEST_F(PeerTest, an_empty_immediate_is_tolerated) {
  const RegisterXferMemory to = peer->announcement();
  peer->write_with_imm(to, 0, 0, 0);
  peer->write_with_imm(to, 0, 3, 3);
  run_until([&] {
    peer->poll();
    return !victim->readable().empty();
  });
  EXPECT_EQ(victim->readable().size(), 3u);
}

TEST_F(PeerTest, fills_the_tail_and_splits_there) {
  RegisterXferMemory small = peer->own_buffer();
  small.length_bytes = 100;
  const std::vector<char> much(250, 'x');
  std::size_t sent = 0;
  victim->on_writable(
      [&] { sent += victim->try_write(asio::buffer(much.data() + sent, much.size() - sent)); });
  EXPECT_EQ(victim->try_write(asio::buffer(much)), 0u) << "nothing may be written before an announcement";
  for (const std::size_t expected : {100u, 200u, 250u}) {
    send_message(*peer, small);
    run_until([&] {
      peer->poll();
      return sent == expected;
    });
  }
  run_until([&] {
    peer->poll();
    return peer->immediates().size() == 3;
  });
  EXPECT_EQ(peer->immediates(), (std::vector<std::uint32_t>{100, 100, 50}));
}

TEST_F(PeerTest, announces_again_only_when_the_buffer_was_filled) {
  const RegisterXferMemory to = peer->announcement();
  peer->write_with_imm(to, 0, 8191, 8191);
  run_until([&] {
    peer->poll();
    return victim->readable().size() == 8191;
  });
  victim->consume(8191);
  EXPECT_EQ(victim->stats().announcements, 1u);
  peer->write_with_imm(to, 8191, 1, 1);
  const RegisterXferMemory again = peer->announcement();
  EXPECT_EQ(again.length_bytes, 8192u);
}

}  // namespace
}  // namespace weir::rdma

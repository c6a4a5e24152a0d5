// Peers that break the channel protocol, over plain verbs: each loses its own channel, with a typed error on
// our side, and does not affect a well-behaved channel through the same acceptor.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/rdma/channel_pair.hpp"
#include "tests/rdma/raw_peer.hpp"

namespace weir::rdma {
namespace {

using channel_wire::Greeting;
using channel_wire::Immediate;
using testing_support::ChannelTest;
using testing_support::pattern;
using testing_support::RawPeer;

constexpr Greeting well_behaved{
    .rendezvous_depth = 2, .window = 40, .block_bytes = 1024, .max_message = 100'000};
constexpr ChannelSettings victims = {.block_bytes = 4096,
                                     .receive_blocks = 12,
                                     .held_bytes = 64 << 10,
                                     .max_message_bytes = 100'000,
                                     .rendezvous_bytes = 2000,
                                     .rendezvous_depth = 4,
                                     .keepalive = std::chrono::milliseconds(5)};  // window 5

struct ChannelPeer : ChannelTest {
  std::optional<Channel> victim;  // our end of the raw peer's connection
  std::optional<ChannelAcceptor> acceptor;
  std::optional<RawPeer> peer;

  void SetUp() override {
    ChannelTest::SetUp();
    acceptor.emplace(listen_channel(victims));
    peer.emplace([this] { io.poll(); });
    acceptor->async_accept([this](std::error_code failed, Channel channel) {
      ASSERT_FALSE(failed);
      victim.emplace(std::move(channel));
    });
    peer->connect(acceptor->local_endpoint(), channel_wire::encode(well_behaved));
    run_until([&] { return victim.has_value(); });
  }
  void run_to_the_end() {
    run_until([&] {
      peer->poll();
      return static_cast<bool>(victim->end());
    });
  }
};

constexpr std::uint32_t data_immediate = 0x10000000, ack_immediate = 0x20000000;

std::vector<std::byte> message_of(std::size_t bytes) {
  std::vector<std::byte> frame(8 + bytes);
  channel_wire::put_message_header(frame.data(), static_cast<std::uint32_t>(bytes));
  return frame;
}
std::vector<std::byte> first_of(std::uint32_t total, std::size_t bytes) {
  std::vector<std::byte> frame(16 + bytes);
  channel_wire::put_first_header(frame.data(), total, static_cast<std::uint32_t>(bytes));
  return frame;
}
std::vector<std::byte> more_of(std::size_t bytes) {
  std::vector<std::byte> frame(8 + bytes);
  channel_wire::put_more_header(frame.data(), static_cast<std::uint32_t>(bytes));
  return frame;
}
// `total` 0: the whole message.
std::vector<std::byte> offer_of(channel_wire::Offer offer) {
  if (offer.total == 0) offer.total = offer.length;
  std::vector<std::byte> frame(channel_wire::offer_record_bytes(offer));
  channel_wire::put_offer(frame.data(), offer);
  return frame;
}

struct Crime {
  std::string name;
  Errc verdict;
  std::function<void(RawPeer&)> commit;
};

const std::vector<Crime>& crimes() {
  static const std::vector<Crime> table = {
      {"a_send_without_an_immediate", Errc::bad_immediate, [](RawPeer& p) { p.send(message_of(10)); }},
      {"an_immediate_of_no_kind", Errc::bad_immediate,
       [](RawPeer& p) { p.send_with_imm(message_of(10), 0); }},
      {"credits_that_were_never_taken", Errc::bad_immediate,
       [](RawPeer& p) { p.send_with_imm(message_of(10), data_immediate | 1); }},
      {"all_the_credits_there_are", Errc::bad_immediate,
       [](RawPeer& p) { p.send_with_imm({}, ack_immediate | 0xffff); }},
      {"a_fetch_of_what_was_never_offered", Errc::bad_immediate,
       [](RawPeer& p) { p.send_with_imm({}, ack_immediate | 1 << 16); }},
      {"an_acknowledgement_of_nothing", Errc::bad_immediate,
       [](RawPeer& p) { p.send_with_imm({}, ack_immediate); }},
      {"an_acknowledgement_with_bytes", Errc::bad_immediate,
       [](RawPeer& p) { p.send_with_imm(message_of(1), ack_immediate | 1); }},
      {"an_empty_frame", Errc::bad_frame, [](RawPeer& p) { p.send_with_imm({}, data_immediate); }},
      {"a_record_longer_than_its_frame", Errc::bad_frame,
       [](RawPeer& p) {
         auto frame = message_of(10);
         frame[4] = std::byte{0xff};
         p.send_with_imm(frame, data_immediate);
       }},
      {"a_frame_longer_than_a_block", Errc::bad_frame,
       [](RawPeer& p) { p.send_with_imm(message_of(4096), data_immediate); }},
      {"a_part_of_nothing", Errc::bad_frame,
       [](RawPeer& p) { p.send_with_imm(more_of(10), data_immediate); }},
      {"a_message_within_a_message", Errc::bad_frame,
       [](RawPeer& p) {
         p.send_with_imm(first_of(1000, 10), data_immediate);
         p.send_with_imm(message_of(10), data_immediate);
       }},
      {"a_message_begun_twice", Errc::bad_frame,
       [](RawPeer& p) {
         p.send_with_imm(first_of(1000, 10), data_immediate);
         p.send_with_imm(first_of(1000, 10), data_immediate);
       }},
      {"more_parts_than_it_said", Errc::bad_frame,
       [](RawPeer& p) {
         p.send_with_imm(first_of(1000, 900), data_immediate);
         p.send_with_imm(more_of(101), data_immediate);
       }},
      {"a_message_too_long", Errc::oversize_message,
       [](RawPeer& p) { p.send_with_imm(first_of(100'001, 10), data_immediate); }},
      {"the_longest_message_there_is", Errc::oversize_message,
       [](RawPeer& p) { p.send_with_imm(first_of(0xffffffff, 10), data_immediate); }},
      {"an_offer_too_long", Errc::oversize_message,
       [](RawPeer& p) { p.send_with_imm(offer_of({0x1000, 100'001, 1}), data_immediate); }},
      {"an_offered_part_of_a_message_too_long", Errc::oversize_message,
       [](RawPeer& p) { p.send_with_imm(offer_of({0x1000, 1000, 1, 100'001, 0}), data_immediate); }},
      {"an_offered_part_that_continues_nothing", Errc::bad_frame,
       [](RawPeer& p) { p.send_with_imm(offer_of({0x1000, 5000, 1, 15'000, 5000}), data_immediate); }},
      {"an_offered_part_left_out", Errc::bad_frame,
       [](RawPeer& p) {
         auto frame = offer_of({0x1000, 5000, 1, 15'000, 0});
         const auto third = offer_of({0x1000, 5000, 1, 15'000, 10'000});
         frame.insert(frame.end(), third.begin(), third.end());
         p.send_with_imm(frame, data_immediate);
       }},
      {"a_message_between_offered_parts", Errc::bad_frame,
       [](RawPeer& p) {
         auto frame = offer_of({0x1000, 5000, 1, 15'000, 0});
         const auto other = message_of(10);
         frame.insert(frame.end(), other.begin(), other.end());
         p.send_with_imm(frame, data_immediate);
       }},
      // Each would take a queue entry, a hundred times as large, until the message before it is taken.
      {"a_message_offered_byte_by_byte", Errc::bad_frame,
       [](RawPeer& p) {
         const auto at = reinterpret_cast<std::uintptr_t>(p.memory().data());
         p.send_with_imm(offer_of({at, 1, p.rkey_to_read(), 3000, 0}), data_immediate);
       }},
      {"more_offers_than_granted", Errc::window_overrun,
       [](RawPeer& p) {
         std::vector<std::byte> frame;
         for (int i = 0; i < 5; ++i) {
           const auto one =
               offer_of({reinterpret_cast<std::uintptr_t>(p.memory().data()), 100, p.own_buffer().rkey});
           frame.insert(frame.end(), one.begin(), one.end());
         }
         p.send_with_imm(frame, data_immediate);
       }},
      {"an_offer_of_wild_memory", Errc::remote_access,
       [](RawPeer& p) { p.send_with_imm(offer_of({0xdead0000, 5000, 0x1234567}), data_immediate); }},
      {"an_offer_of_memory_that_may_not_be_read", Errc::remote_access,
       [](RawPeer& p) {
         const RegisterXferMemory own = p.own_buffer();  // remote_write only
         p.send_with_imm(offer_of({own.addr, 5000, own.rkey}), data_immediate);
       }},
  };
  return table;
}

struct BadChannelPeer : ChannelPeer, testing::WithParamInterface<std::size_t> {};

TEST_P(BadChannelPeer, loses_its_channel_and_nobody_else_does) {
  const Crime& crime = crimes()[GetParam()];
  SCOPED_TRACE(crime.name);
  auto [client, server] = connect_channels(*acceptor, victims);
  std::optional<std::error_code> receive_outcome;
  std::function<void()> receive = [&] {
    victim->async_receive([&](std::error_code failed, Message) {
      if (failed)
        receive_outcome = failed;
      else
        receive();
    });
  };
  receive();
  crime.commit(*peer);
  run_to_the_end();
  EXPECT_EQ(victim->end(), crime.verdict) << victim->error().what;
  EXPECT_FALSE(victim->error().what.empty());
  run_until([&] { return receive_outcome.has_value(); });
  EXPECT_EQ(*receive_outcome, crime.verdict) << "what waits is told the cause";
  EXPECT_EQ(victim->memory().posted_bytes, 0u) << "memory went back";
  EXPECT_EQ(victim->memory().held_bytes, 0u);

  ASSERT_TRUE(client.try_send(asio::buffer("still here", 10)));
  EXPECT_EQ(receive_text(server), "still here");
}

INSTANTIATE_TEST_SUITE_P(Crimes, BadChannelPeer, testing::Range<std::size_t>(0, crimes().size()),
                         [](const auto& each) { return crimes()[each.param].name; });

TEST_F(ChannelPeer, more_frames_than_granted_end_the_channel) {
  // The application keeps every message and may hold no more, so no credits come back.
  std::vector<Message> kept;
  const auto keep = [&] {
    while (auto message = victim->try_receive()) kept.push_back(std::move(*message));
  };
  for (int i = 0; i < 60 && !victim->end(); ++i) {
    peer->send_with_imm(message_of(100), data_immediate);
    for (int j = 0; j < 20; ++j) {
      peer->poll();
      keep();
    }
  }
  run_to_the_end();
  EXPECT_EQ(victim->end(), Errc::window_overrun) << victim->error().what;
}

TEST_F(ChannelPeer, vanished_without_a_word_is_found_by_a_keepalive) {
  peer->vanish();
  run_until([&] { return static_cast<bool>(victim->end()); });
  EXPECT_EQ(victim->error().code, Errc::connection_lost) << victim->error().what;
}

TEST_F(ChannelPeer, an_offer_never_fetched_ends_with_the_peer_and_its_memory_goes_back) {
  const std::string large = pattern(50'000);
  ASSERT_TRUE(victim->try_send(asio::buffer(large)));
  EXPECT_EQ(victim->counters().offers, 1u);
  EXPECT_GT(victim->memory().sending_bytes, 0u);
  peer->vanish();
  run_until([&] { return static_cast<bool>(victim->end()); });
  EXPECT_EQ(victim->memory().sending_bytes, 0u);
}

TEST_F(ChannelPeer, a_greeting_of_another_version_is_refused) {
  auto greeting = channel_wire::encode(well_behaved);
  greeting[4] = std::byte{1};
  RawPeer other([this] { io.poll(); });
  EXPECT_THROW(other.connect(acceptor->local_endpoint(), greeting), std::runtime_error);
  EXPECT_EQ(acceptor->rejected(), 1u);
}

}  // namespace
}  // namespace weir::rdma

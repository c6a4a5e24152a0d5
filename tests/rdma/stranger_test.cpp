// A peer that knows everything about another connection, the address and the key of its buffers included,
// and tries to use them on its own connection.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/rdma/channel_pair.hpp"
#include "tests/rdma/raw_peer.hpp"

namespace weir::rdma {
namespace {

using testing_support::ChannelTest;
using testing_support::pattern;
using testing_support::RawPeer;

constexpr std::uint32_t buffer_bytes = 8192;

// Two strangers that are connected to one server.
template <class End>
struct Strangers : ChannelTest {
  std::vector<End> ours;  // the server's ends
  std::optional<RawPeer> neighbour, attacker;

  void connect(auto& acceptor, std::optional<RawPeer>& peer, std::span<const std::byte> greeting = {}) {
    peer.emplace([this] { io.poll(); });
    const std::size_t before = ours.size();
    acceptor.async_accept([this](std::error_code failed, End end) {
      ASSERT_FALSE(failed);
      ours.push_back(std::move(end));
    });
    peer->connect(acceptor.local_endpoint(), greeting);
    run_until([&] { return ours.size() > before; });
  }
  void run_until_refused() {
    run_until([&] {
      attacker->poll();
      return !attacker->failures().empty();
    });
  }
  void TearDown() override { ours.clear(); }
};

struct Deed {
  std::string name;
  // The attacker's own announcement, the neighbour's.
  std::function<void(RawPeer&, const RegisterXferMemory& own, const RegisterXferMemory& neighbours)> commit;
};

const std::vector<Deed>& deeds() {
  static const std::vector<Deed> table = {
      {"a_write_with_its_address_and_key",
       [](RawPeer& p, const auto&, const auto& theirs) { p.write(theirs, 0, 16); }},
      {"a_write_with_its_key_that_claims_bytes",
       [](RawPeer& p, const auto&, const auto& theirs) { p.write_with_imm(theirs, 0, 16, 16); }},
      {"a_write_to_its_address_with_the_own_key",
       [](RawPeer& p, const auto& own, const auto& theirs) {
         p.write({theirs.addr, theirs.length_bytes, own.rkey}, 0, 16);
       }},
      {"a_write_to_the_own_address_with_its_key",
       [](RawPeer& p, const auto& own, const auto& theirs) {
         p.write({own.addr, own.length_bytes, theirs.rkey}, 0, 16);
       }},
      {"a_write_beyond_the_own_buffer",
       [](RawPeer& p, const auto& own, const auto&) { p.write(own, buffer_bytes - 8, 16); }},
      {"a_read_with_its_address_and_key",
       [](RawPeer& p, const auto&, const auto& theirs) { p.read(theirs.addr, theirs.rkey, 16); }},
      {"a_read_of_the_own_buffer",
       [](RawPeer& p, const auto& own, const auto&) { p.read(own.addr, own.rkey, 16); }},
  };
  return table;
}

struct StreamStranger : Strangers<Stream>, testing::WithParamInterface<std::size_t> {};

TEST_P(StreamStranger, is_refused_what_another_stream_announced) {
  Acceptor acceptor = listen({.receive_buffer_bytes = buffer_bytes});
  connect(acceptor, neighbour);
  connect(acceptor, attacker);
  const RegisterXferMemory theirs = neighbour->announcement(), own = attacker->announcement();
  std::ranges::fill(neighbour->memory().first(16), std::byte{'n'});
  neighbour->write(theirs, 0, 16);
  std::ranges::fill(attacker->memory().first(16), std::byte{'a'});

  deeds()[GetParam()].commit(*attacker, own, theirs);
  run_until_refused();
  EXPECT_EQ(attacker->failures().front(), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(attacker->memory()[0], std::byte{'a'}) << "it read something";
  run_until([&] { return static_cast<bool>(ours[1].end()); });
  EXPECT_EQ(ours[1].end(), Errc::trespass) << ours[1].error().what;
  ours[1].close();
  EXPECT_EQ(engine->stats().trespasses, 1u);

  neighbour->write_with_imm(theirs, 16, 1, 17);
  run_until([&] {
    neighbour->poll();
    return ours[0].readable().size() == 17;
  });
  EXPECT_TRUE(std::ranges::all_of(ours[0].readable(), [](std::byte b) { return b == std::byte{'n'}; }));
  EXPECT_FALSE(ours[0].end());
}

INSTANTIATE_TEST_SUITE_P(Deeds, StreamStranger, testing::Range<std::size_t>(0, deeds().size()),
                         [](const auto& each) { return deeds()[each.param].name; });

struct ChannelStranger : Strangers<Channel> {
  channel_wire::Offer offer_to(Channel& channel, RawPeer& peer, const std::string& message) {
    EXPECT_TRUE(channel.try_send(asio::buffer(message)));
    const std::vector<std::byte> frame = peer.control();
    return std::get<channel_wire::Offer>(channel_wire::FrameReader(frame).next().value());
  }
};

TEST_F(ChannelStranger, is_refused_what_another_channel_offers) {
  const auto greeting = channel_wire::encode(
      {.rendezvous_depth = 2, .window = 40, .block_bytes = 1024, .max_message = 100'000});
  ChannelAcceptor acceptor = listen_channel(
      {.block_bytes = 4096, .receive_blocks = 12, .rendezvous_bytes = 2000, .rendezvous_depth = 4});
  connect(acceptor, neighbour, greeting);
  connect(acceptor, attacker, greeting);
  const std::string secret = pattern(10'000);
  const channel_wire::Offer theirs = offer_to(ours[0], *neighbour, secret);

  std::ranges::fill(attacker->memory().first(10'000), std::byte{'a'});
  attacker->read(theirs.address, theirs.rkey, 10'000);
  run_until_refused();
  EXPECT_EQ(attacker->failures().front(), IBV_WC_REM_ACCESS_ERR);
  run_until([&] { return static_cast<bool>(ours[1].end()); });
  EXPECT_EQ(ours[1].end(), Errc::trespass) << ours[1].error().what;
  EXPECT_EQ(engine->stats().trespasses, 1u);
  EXPECT_TRUE(
      std::ranges::all_of(attacker->memory().first(10'000), [](std::byte b) { return b == std::byte{'a'}; }));

  neighbour->read(theirs.address, theirs.rkey, 10'000);
  run_until([&] {
    neighbour->poll();
    return neighbour->reads() == 1;
  });
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(neighbour->memory().data()), 10'000), secret);
}

}  // namespace
}  // namespace weir::rdma

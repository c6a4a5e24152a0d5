// Who is let in: ends that know the same token, and without one programs of this host.
#include "tensor/link/admission.hpp"

#include <gtest/gtest.h>

namespace weir::tensor {
namespace {

using Step = wire::Auth::Step;

constexpr std::uint64_t generation = 4711;

Nonce nonce_of(int byte) {
  Nonce nonce;
  nonce.fill(static_cast<std::byte>(byte));
  return nonce;
}
HubAdmission hub_with(std::string token, bool open = false, bool same_host = true) {
  return HubAdmission({.token = std::move(token), .open = open}, generation, same_host);
}

struct Conversation {
  HubAdmission hub;
  PeerAdmission peer;
  int hub_nonce = 2;
  std::optional<Errc> hub_fault = {}, peer_fault = {};
  wire::Auth proof = {};

  // Until one of them is content or finds a fault.
  void run() {
    wire::Auth next = peer.hello(nonce_of(1));
    while (true) {
      const auto answer = hub.on(next, [this] { return nonce_of(hub_nonce); });
      if (!answer) return static_cast<void>(hub_fault = answer.error().code);
      const auto reply = peer.on(*answer, generation);
      if (!reply) return static_cast<void>(peer_fault = reply.error().code);
      if (!*reply) return;
      next = proof = **reply;
    }
  }
};

TEST(Admission, ends_with_the_same_token_let_each_other_in) {
  Conversation both{hub_with("secret"), PeerAdmission("secret")};
  EXPECT_FALSE(both.hub.admits());
  both.run();
  EXPECT_TRUE(both.hub.admits());
  EXPECT_FALSE(both.hub_fault || both.peer_fault);
}

TEST(Admission, hub_refuses_a_wrong_token_and_a_second_try) {
  for (const char* wrong : {"Secret", "secret ", "s"}) {
    Conversation both{hub_with("secret"), PeerAdmission(wrong)};
    both.run();
    EXPECT_EQ(both.hub_fault, Errc::refused);
    EXPECT_FALSE(both.hub.admits());
    EXPECT_EQ(both.hub.on(both.proof, [] { return nonce_of(2); }).error().code, Errc::protocol);
  }
}

TEST(Admission, hub_without_a_token_is_not_believed) {
  Conversation both{hub_with(""), PeerAdmission("secret")};
  both.run();
  EXPECT_EQ(both.hub_fault, Errc::refused);
}

TEST(Admission, peer_believes_no_hub_that_only_says_welcome) {
  PeerAdmission peer("secret");
  peer.hello(nonce_of(1));
  ASSERT_TRUE(peer.on({.step = Step::challenge, .bytes = nonce_of(2)}, generation));
  EXPECT_EQ(peer.on({.step = Step::welcome, .bytes = nonce_of(3)}, generation).error().code, Errc::refused);
}

TEST(Admission, proof_is_of_no_use_in_another_conversation) {
  Conversation first{hub_with("secret"), PeerAdmission("secret")};
  first.run();
  HubAdmission again = hub_with("secret");
  ASSERT_TRUE(again.on({.step = Step::hello, .bytes = nonce_of(1)}, [] { return nonce_of(3); }));
  EXPECT_FALSE(again.on(first.proof, [] { return nonce_of(3); }));
  EXPECT_FALSE(again.admits());
  HubAdmission other({.token = "secret"}, generation + 1, true);
  ASSERT_TRUE(other.on({.step = Step::hello, .bytes = nonce_of(1)}, [] { return nonce_of(2); }));
  EXPECT_FALSE(other.on(first.proof, [] { return nonce_of(2); }));
}

TEST(Admission, welcome_is_no_proof) {
  HubAdmission hub = hub_with("secret");
  const auto challenge = hub.on({.step = Step::hello, .bytes = nonce_of(1)}, [] { return nonce_of(1); });
  ASSERT_TRUE(challenge);
  Conversation other{hub_with("secret"), PeerAdmission("secret"), 1};
  wire::Auth next = other.peer.hello(nonce_of(1));
  const auto answer = other.hub.on(next, [] { return nonce_of(1); });
  const auto proof = other.peer.on(*answer, generation);
  const auto welcome = other.hub.on(**proof, [] { return nonce_of(1); });
  EXPECT_FALSE(hub.on({.step = Step::proof, .bytes = welcome->bytes}, [] { return nonce_of(1); }));
}

TEST(Admission, steps_out_of_turn_are_faults) {
  const auto nonce = [] { return nonce_of(2); };
  for (const Step step : {Step::challenge, Step::proof, Step::welcome})
    EXPECT_EQ(hub_with("secret").on({.step = step}, nonce).error().code, Errc::protocol);
  HubAdmission twice = hub_with("secret");
  ASSERT_TRUE(twice.on({.step = Step::hello}, nonce));
  EXPECT_EQ(twice.on({.step = Step::hello}, nonce).error().code, Errc::protocol);
  PeerAdmission peer("secret");
  peer.hello(nonce_of(1));
  for (const Step step : {Step::hello, Step::proof, Step::welcome})
    EXPECT_EQ(peer.on({.step = step}, generation).error().code, Errc::protocol);
  EXPECT_EQ(PeerAdmission("").on({.step = Step::challenge}, generation).error().code, Errc::protocol);
}

TEST(Admission, hub_without_a_token_serves_its_own_host_only) {
  struct Row {
    bool open, same_host, admits;
  };
  for (const Row& row : {Row{false, true, true}, Row{false, false, false}, Row{true, false, true}})
    EXPECT_EQ(hub_with("", row.open, row.same_host).admits(), row.admits);
  EXPECT_FALSE(hub_with("secret", true, true).admits()) << "a token is asked of everybody";
  EXPECT_EQ(hub_with("", false, false).refusal().code, Errc::refused);
}

TEST(Admission, host_knows_its_own_addresses) {
  for (const char* own : {"127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_of_this_host(asio::ip::make_address(own))) << own;
  for (const char* other : {"192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"})
    EXPECT_FALSE(is_of_this_host(asio::ip::make_address(other))) << other;
}

}  // namespace
}  // namespace weir::tensor

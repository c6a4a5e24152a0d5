// Hubs and peers at tls:// addresses: what arrives, and who gets nothing.
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>
#include <list>
#include <numeric>

#include "tests/certificates.hpp"
#include "tests/tensor/hub_and_peer.hpp"

namespace weir::tensor {
namespace {

using testing_support::must;
using testing_support::Numbers;
using testing_support::numbers;
using testing_support::publish;
using testing_support::values;
using testing_support::view_of;

rdma::Result<rdma::Provider> no_rdma() { return rdma::fail(rdma::Errc::no_device, "this test has no RDMA"); }

TlsSettings hubs(const std::string& authority = {}) {
  const test::Certificates& all = test::certificates();
  return {.certificate = all.certificate("server"),
          .key = all.key("server"),
          .authority = authority.empty() ? "" : all.certificate(authority)};
}

// `shows`: whose certificate the peer has; empty: none.
TlsSettings peers(const std::string& believes = "ca", const std::string& shows = {}) {
  const test::Certificates& all = test::certificates();
  TlsSettings tls{.authority = all.certificate(believes), .server_name = "server"};
  if (!shows.empty()) tls.certificate = all.certificate(shows), tls.key = all.key(shows);
  return tls;
}

std::unique_ptr<Hub> tls_hub(HubSettings settings) {
  if (settings.tls.certificate.empty()) settings.tls = hubs();
  return must(Hub::listen("tls://127.0.0.1:0", no_rdma(), settings));
}

Result<std::unique_ptr<Peer>> connect(const Hub& hub, const TlsSettings& tls, std::string token = {}) {
  return Peer::connect(hub.address(), no_rdma(), {.token = std::move(token), .tls = tls});
}

struct TlsSizes : testing::TestWithParam<std::size_t> {};

TEST_P(TlsSizes, arrive_whole_in_both_directions) {
  const auto hub = tls_hub({.push = {.names = "pushed"}});
  const auto peer = must(connect(*hub, peers()));
  EXPECT_EQ(hub->address().find("tls://127.0.0.1:"), 0U);
  EXPECT_EQ(peer->stats().transport, Transport::tls);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const Numbers array = numbers(GetParam(), 0);
    std::iota(array->begin(), array->end(), round * 1000);
    publish(*hub, "a", array);
    EXPECT_EQ(values(must(peer->fetch("a"))), *array);
    EXPECT_EQ(must(peer->push("pushed", view_of(array))), round);
    const Held held = must(hub->get("pushed", round - 1, std::chrono::seconds(30)));
    EXPECT_TRUE(std::equal(held.data.begin(), held.data.end(), std::as_bytes(std::span(*array)).begin()));
  }
  EXPECT_EQ(peer->stats().connects, 1U);
}

INSTANTIATE_TEST_SUITE_P(All, TlsSizes, testing::Values(0, 1, 1000, 2047, 2048, 2049, 3'000'001));

struct Outcome {
  const char* what;
  TlsSettings hub, peer;
  std::string hubs_token, peers_token;
  bool served;
};

TEST(Tls, serves_those_that_may_come) {
  TlsSettings elsewhere = peers();
  elsewhere.server_name.clear();  // the address, for which the certificate is not
  const Outcome rows[] = {
      {"a peer that trusts the hub's authority", hubs(), peers(), "", "", true},
      {"another authority", hubs(), peers("other-ca"), "", "", false},
      {"another name", hubs(), elsewhere, "", "", false},
      {"a certificate that the hub asks for", hubs("ca"), peers("ca", "client"), "", "", true},
      {"no certificate where the hub asks for one", hubs("ca"), peers(), "", "", false},
      {"a certificate of another authority", hubs("ca"), peers("ca", "stranger"), "", "", false},
      {"the token", hubs(), peers(), "secret", "secret", true},
      {"another token", hubs(), peers(), "secret", "other", false},
      {"a certificate, and another token", hubs("ca"), peers("ca", "client"), "secret", "other", false},
  };
  for (const Outcome& row : rows) {
    SCOPED_TRACE(row.what);
    HubSettings settings{.tls = row.hub};
    settings.access.token = row.hubs_token;
    const auto hub = tls_hub(settings);
    publish(*hub, "a", numbers(100, 7));
    const auto peer = connect(*hub, row.peer, row.peers_token);
    ASSERT_EQ(peer.has_value(), row.served) << (peer ? "" : peer.error().what);
    if (row.served)
      EXPECT_EQ(values(must((*peer)->fetch("a"))), *numbers(100, 7));
    else
      EXPECT_EQ(peer.error().code, Errc::refused) << peer.error().what;
  }
}

TEST(Tls, is_not_spoken_with_an_end_that_does_not) {
  const auto secure = tls_hub({});
  const std::string at = secure->address().substr(secure->address().find("://"));
  EXPECT_FALSE(Peer::connect("tcp" + at, no_rdma()));
  const auto plain = must(Hub::listen("tcp://127.0.0.1:0", no_rdma()));
  const std::string there = plain->address().substr(plain->address().find("://"));
  EXPECT_FALSE(Peer::connect("tls" + there, no_rdma(), {.tls = peers()}));
}

TEST(Tls, needs_files_that_can_be_read) {
  struct Row {
    TlsSettings tls;
    const char* named;
  };
  TlsSettings missing = hubs();
  missing.key = "/nonexistent.key";
  for (const Row& row : {Row{{}, "tls.certificate"}, Row{missing, "/nonexistent.key"}}) {
    const auto hub = Hub::listen("tls://127.0.0.1:0", no_rdma(), {.tls = row.tls});
    ASSERT_FALSE(hub);
    EXPECT_EQ(hub.error().code, Errc::bad_address);
    EXPECT_NE(hub.error().what.find(row.named), std::string::npos) << hub.error().what;
  }
  const auto peer = Peer::connect("tls://127.0.0.1:1", no_rdma(), {.tls = {.authority = "/nonexistent.crt"}});
  EXPECT_EQ(peer.error().code, Errc::bad_address);
}

// More than there may be handshakes under way.
TEST(Tls, silent_clients_keep_nobody_out) {
  const auto hub = tls_hub({});
  publish(*hub, "a", numbers(1, 7));
  const auto at = *resolve(*parse_address(hub->address()));
  asio::io_context io;
  std::list<asio::ip::tcp::socket> silent;
  for (int i = 0; i < 200; ++i) {
    silent.emplace_back(io).connect(at);
    if (i % 2 == 0) asio::write(silent.back(), asio::buffer("\x16\x03\x01", 3));
  }
  EXPECT_EQ(values(must(must(connect(*hub, peers()))->fetch("a"))), *numbers(1, 7));
}

}  // namespace
}  // namespace weir::tensor

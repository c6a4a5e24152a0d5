// The same conversation over TCP: the parts of fetch_test and push_test that a link can affect; and when a
// peer or a hub falls back to TCP, and reports it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <cerrno>
#include <list>
#include <numeric>
#include <thread>

#include "tensor/link/stream_frames.hpp"
#include "tests/tensor/hub_and_peer.hpp"

namespace weir::tensor {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;
using testing_support::must;
using testing_support::Numbers;
using testing_support::numbers;
using testing_support::publish;
using testing_support::test_provider;
using testing_support::values;
using testing_support::view_of;

rdma::Result<rdma::Provider> no_rdma() { return rdma::fail(rdma::Errc::no_device, "this test has no RDMA"); }

std::unique_ptr<Hub> tcp_hub(const HubSettings& settings = {}) {
  return must(Hub::listen("tcp://127.0.0.1:0", no_rdma(), settings));
}
std::unique_ptr<Peer> tcp_peer(const Hub& hub, const PeerSettings& settings = {}) {
  return must(Peer::connect(hub.address(), no_rdma(), settings));
}
Numbers rising(std::size_t count, std::uint64_t from) {
  Numbers array = numbers(count, 0);
  std::iota(array->begin(), array->end(), from);
  return array;
}

struct TcpSizes : testing::TestWithParam<std::size_t> {};

TEST_P(TcpSizes, arrive_whole_in_both_directions) {
  const auto hub = tcp_hub({.push = {.names = "pushed"}});
  const auto peer = tcp_peer(*hub);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const Numbers array = rising(GetParam(), round * 1000);
    const std::uint64_t version = publish(*hub, "a", array);
    const Fetched fetched = must(peer->fetch("a"));
    EXPECT_EQ(fetched.version, version);
    EXPECT_EQ(fetched.generation, hub->generation());
    EXPECT_EQ(values(fetched), *array);
    Numbers mine = numbers(array->size(), 0);
    must(peer->fetch(
        "a",
        {.out = Out{testing_support::uint64, {mine->size()}, std::as_writable_bytes(std::span(*mine))}}));
    EXPECT_EQ(*mine, *array);
    EXPECT_EQ(must(peer->push("pushed", view_of(array))), round);
    EXPECT_TRUE(std::ranges::equal(must(hub->get("pushed")).data, std::as_bytes(std::span(*array))));
  }
  EXPECT_EQ(peer->stats().transport, Transport::tcp);
  EXPECT_EQ(peer->stats().fallbacks, 0U);  // TCP was requested
  EXPECT_EQ(hub->stats().tcp_connections, 1U);
}
INSTANTIATE_TEST_SUITE_P(Arrays, TcpSizes, testing::Values(0, 1, 2049, 1 << 17, 3'000'001));

TEST(Tcp, carries_trees_with_long_metadata_and_changed_metadata) {
  const auto hub = tcp_hub({.push = {.names = "*"}});
  const auto peer = tcp_peer(*hub);
  for (const std::size_t count : {300U, 7U, 300U}) {
    std::vector<Numbers> arrays;
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < count; ++i) {
      arrays.push_back(rising(i % 7 == 0 ? 3000 + i : i % 50, i));
      views.push_back(view_of(arrays.back(), "layer" + std::to_string(i)));
    }
    must(hub->publish_tree("model", views, nullptr));
    must(peer->push_tree("pushed", views));
    for (const char* name : {"model", "pushed"}) {
      const Fetched fetched = must(peer->fetch(name));
      ASSERT_EQ(fetched.metadata->tensors.size(), count);
      for (std::size_t i = 0; i < count; ++i) {
        const TensorInfo& info = fetched.metadata->tensors[i];
        EXPECT_TRUE(std::ranges::equal(fetched.data.subspan(info.offset, *info.bytes()),
                                       std::as_bytes(std::span(*arrays[i]))))
            << name << i;
      }
    }
  }
}

TEST(Tcp, many_at_once_and_a_waiting_one) {
  const auto hub = tcp_hub();
  const auto peer = tcp_peer(*hub);
  const auto unborn = peer->start("b", {.timeout = 30s});
  for (std::uint64_t i = 0; i < 200; ++i) publish(*hub, "a" + std::to_string(i), numbers(1000 * (i % 40), i));
  std::vector<std::shared_ptr<Fetch>> all;
  for (std::uint64_t i = 0; i < 200; ++i) all.push_back(peer->start("a" + std::to_string(i)));
  for (std::uint64_t i = 0; i < 200; ++i)
    EXPECT_EQ(values(must(peer->wait(all[i], 60s))), *numbers(1000 * (i % 40), i)) << i;
  publish(*hub, "b", numbers(5, 7));
  EXPECT_EQ(values(must(peer->wait(unborn, 30s))), *numbers(5, 7));
  EXPECT_EQ(peer->fetch("c").error().code, Errc::not_published);
  EXPECT_EQ(peer->fetch("c", {.timeout = 20ms}).error().code, Errc::timed_out);
}

TEST(Tcp, is_never_torn_under_a_fast_writer) {
  const auto hub = tcp_hub({.keep = 1});
  std::atomic<bool> stop = false;
  std::jthread writer([&] {
    for (std::uint64_t version = 1; !stop; ++version) {
      Numbers array = numbers(10'000, version);
      std::vector<std::uint64_t>* raw = array.get();
      const std::shared_ptr<const void> owner(raw, [array](auto* mine) { std::ranges::fill(*mine, 0); });
      must(hub->publish("a", view_of(array), owner));
    }
  });
  const auto peer = tcp_peer(*hub);
  std::uint64_t last = 0;
  for (int seen = 0; seen < 200; ++seen) {
    const Fetched fetched = must(peer->fetch("a", {.newer_than = last, .timeout = 30s}));
    ASSERT_GT(fetched.version, last);
    last = fetched.version;
    for (const std::uint64_t each : values(fetched)) ASSERT_EQ(each, last) << "torn";
  }
  stop = true;
}

TEST(Tcp, says_which_hub_is_gone_and_connects_to_the_next) {
  auto hub = tcp_hub();
  const std::string address = hub->address();
  const auto peer = tcp_peer(*hub);
  publish(*hub, "a", numbers(10, 1));
  must(peer->fetch("a"));
  const std::uint64_t old = hub->generation();
  const auto waiting = peer->start("a", {.newer_than = 1, .timeout = 30s});
  hub.reset();
  const auto gone = peer->wait(waiting, 30s);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Errc::peer_gone) << gone.error().what;
  EXPECT_EQ(gone.error().generation, old);
  EXPECT_EQ(peer->fetch("a").error().code, Errc::unreachable);
  auto next = must(Hub::listen(address, no_rdma()));
  publish(*next, "a", numbers(10, 2));
  EXPECT_EQ(values(must(peer->fetch("a", {.newer_than = 1, .generation = old}))), *numbers(10, 2));
}

TEST(Tcp, a_hub_listens_on_both_and_the_peer_takes_rdma) {
  std::string said;
  const auto hub = must(Hub::listen("rdma://127.0.0.1:0?fallback=tcp", test_provider()));
  publish(*hub, "a", numbers(10, 1));
  const auto by_rdma = must(
      Peer::connect(hub->address(), test_provider(), {.say = [&](std::string_view line) { said = line; }}));
  EXPECT_EQ(values(must(by_rdma->fetch("a"))), *numbers(10, 1));
  EXPECT_EQ(by_rdma->stats().transport, Transport::rdma);
  EXPECT_EQ(said, "");
  const auto at = must(parse_address(hub->address()));
  const auto by_tcp = must(Peer::connect("tcp://127.0.0.1:" + std::to_string(at.port), no_rdma()));
  EXPECT_EQ(values(must(by_tcp->fetch("a"))), *numbers(10, 1));
  EXPECT_EQ(by_tcp->generation(), by_rdma->generation());
  EXPECT_EQ(hub->stats().tcp_connections, 1U);
  EXPECT_EQ(hub->stats().connections, 2U);
}

TEST(Tcp, is_fallen_back_to_only_when_asked_for_and_said) {
  const auto hub = tcp_hub();
  publish(*hub, "a", numbers(10, 1));
  const std::string port = std::to_string(must(parse_address(hub->address())).port);
  std::string said;
  const PeerSettings settings{.say = [&](std::string_view line) { said = line; }};
  EXPECT_EQ(Peer::connect("rdma://127.0.0.1:" + port, test_provider(), settings).error().code,
            Errc::unreachable);
  EXPECT_EQ(Peer::connect("rdma://127.0.0.1:" + port, no_rdma(), settings).error().code, Errc::device);
  EXPECT_EQ(said, "");
  for (const bool with_rdma : {true, false}) {
    said.clear();
    const auto provider = with_rdma ? rdma::Result<rdma::Provider>(test_provider()) : no_rdma();
    const auto peer = must(Peer::connect("rdma://127.0.0.1:" + port + "?fallback=tcp", provider, settings));
    EXPECT_EQ(values(must(peer->fetch("a"))), *numbers(10, 1));
    EXPECT_EQ(peer->stats().transport, Transport::tcp);
    EXPECT_EQ(peer->stats().fallbacks, 1U);
    EXPECT_NE(said.find("using TCP"), std::string::npos) << said;
  }
}

TEST(Tcp, a_hub_without_rdma_serves_by_tcp_and_says_so) {
  std::string said;
  const auto hub = must(Hub::listen("rdma://127.0.0.1:0?fallback=tcp", no_rdma(),
                                    {.say = [&](std::string_view line) { said = line; }}));
  EXPECT_NE(said.find("TCP only"), std::string::npos) << said;
  publish(*hub, "a", numbers(10, 1));
  const auto peer = must(Peer::connect(hub->address(), no_rdma(), {.say = [](std::string_view) {}}));
  EXPECT_EQ(values(must(peer->fetch("a"))), *numbers(10, 1));
}

// --- peers that break the protocol

std::vector<std::byte> greeting() {
  return wire::encode(wire::Greeting{.window = 2, .records = {0, wire::slots * wire::record_bytes, 0}});
}
void append(std::vector<std::byte>& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); }

// A socket of a stranger.
struct Stranger {
  explicit Stranger(const Hub& hub) { socket.connect(*resolve(*parse_address(hub.address()))); }
  void say(const std::vector<std::byte>& bytes) {
    std::error_code ignored;  // the hub may have closed it meanwhile
    asio::write(socket, asio::buffer(bytes), ignored);
  }
  // Reads until the hub closes; returns how many bytes came before.
  std::size_t until_closed() {
    std::vector<std::byte> all(1 << 20);
    std::error_code closed;
    const std::size_t bytes = asio::read(socket, asio::buffer(all), closed);
    EXPECT_TRUE(closed);
    return bytes;
  }
  asio::io_context io;
  tcp::socket socket{io};
};

TEST(HostileStream, costs_its_own_connection) {
  const auto hub = tcp_hub({.push = {.names = "*"}});
  const auto honest = tcp_peer(*hub);
  publish(*hub, "a", numbers(1000, 7));
  using frames::Header;
  using frames::Kind;
  const auto framed = [](std::uint32_t kind, std::uint32_t index, std::uint64_t bytes) {
    auto header = frames::encode(Header{static_cast<Kind>(kind), index, bytes});
    return std::vector<std::byte>(header.begin(), header.end());
  };
  struct Row {
    const char* what;
    std::vector<std::byte> bytes;
  };
  std::vector<Row> rows = {{"no greeting", std::vector<std::byte>(wire::greeting_bytes, std::byte{'G'})},
                           {"unknown kind", framed(9, 0, 0)},
                           {"long message", framed(1, 0, 4097)},
                           {"endless message", framed(1, 0, ~std::uint64_t{0})},
                           {"data nobody waits for", framed(2, 65, 100)},
                           {"endless data", framed(2, 65, ~std::uint64_t{0})},
                           {"short record", framed(3, 0, 31)}};
  Row record{"record nobody waits for", framed(3, 0, wire::record_bytes)};
  append(record.bytes, wire::encode(wire::Record{.index = 65}));
  rows.push_back(record);
  Row message{"message of nothing", framed(1, 0, 3)};
  append(message.bytes, std::vector<std::byte>(3));
  rows.push_back(message);
  // A batch whose second message is invalid.
  const auto request = wire::encode(wire::Request{.index = 65, .name = "a"});
  Row batch{"half a batch", framed(1, 0, request.size() + 8)};
  append(batch.bytes, request);
  append(batch.bytes, std::vector<std::byte>(8, std::byte{0xff}));
  rows.push_back(batch);
  // More data for a push than announced.
  const std::vector<std::byte> block = encode(Metadata{8, {{"", {1, 8, 1}, {8}, 0}}}).value();
  const auto push = wire::encode(wire::Push{
      .index = 65, .data_bytes = 8, .metadata_bytes = block.size(), .name = "b", .metadata = block});
  Row more{"more data than it said", framed(1, 0, push.size())};
  append(more.bytes, push);
  append(more.bytes, framed(2, 65, 9));
  append(more.bytes, std::vector<std::byte>(9));
  rows.push_back(more);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Stranger stranger(*hub);
    std::vector<std::byte> all = &row == &rows[0] ? std::vector<std::byte>() : greeting();
    append(all, row.bytes);
    append(all, std::vector<std::byte>(64));
    stranger.say(all);
    stranger.until_closed();
    EXPECT_EQ(values(must(honest->fetch("a"))), *numbers(1000, 7));
  }
  EXPECT_EQ(honest->stats().connects, 1U);
  EXPECT_EQ(hub->get("b").error().code, Errc::not_published);
}

TEST(HostileStream, a_byte_at_a_time_is_as_good_as_all_at_once) {
  const auto hub = tcp_hub();
  publish(*hub, "a", numbers(1, 7));
  Stranger stranger(*hub);
  std::vector<std::byte> all = greeting();
  const auto request = wire::encode(wire::Request{.index = 65, .name = "a"});
  append(all, frames::encode({frames::Kind::message, 0, request.size()}));
  append(all, request);
  for (const std::byte each : all) stranger.say({each});
  std::vector<std::byte> answer(wire::greeting_bytes + frames::header_bytes);
  asio::read(stranger.socket, asio::buffer(answer));
  const auto header = frames::parse_header(std::span(answer).last<frames::header_bytes>());
  ASSERT_TRUE(header);
  EXPECT_EQ(header->kind, frames::Kind::message);
  std::vector<std::byte> message(static_cast<std::size_t>(header->bytes));
  asio::read(stranger.socket, asio::buffer(message));
  std::span<const std::byte> frame(message);
  EXPECT_EQ(std::get<wire::MetadataUpdate>(must(wire::take_message(frame))).data_bytes, 8U);
}

std::vector<std::byte> request_for(std::string name) {
  std::vector<std::byte> all = greeting();
  const auto request = wire::encode(wire::Request{.index = 65, .name = std::move(name)});
  append(all, frames::encode({frames::Kind::message, 0, request.size()}));
  append(all, request);
  return all;
}

TEST(HostileStream, more_connections_than_allowed_are_closed) {
  const auto hub = tcp_hub({.max_connections = 2});
  publish(*hub, "a", numbers(1, 7));
  const auto first = tcp_peer(*hub);
  must(first->fetch("a"));
  Stranger second(*hub);
  second.say(request_for("a"));
  std::vector<std::byte> theirs(wire::greeting_bytes + 1);  // and the beginning of the answer
  asio::read(second.socket, asio::buffer(theirs));
  Stranger third(*hub);
  EXPECT_EQ(third.until_closed(), 0U);
  EXPECT_EQ(values(must(first->fetch("a"))), *numbers(1, 7));
  EXPECT_EQ(first->stats().connects, 1U);
}

// Greeted or not.
TEST(SilentPeers, leave_a_full_hub_first) {
  const auto hub = tcp_hub({.max_connections = 4});
  publish(*hub, "a", numbers(1, 7));
  const auto early = tcp_peer(*hub);
  must(early->fetch("a"));
  for (int round = 0; round < 3; ++round) {
    std::list<Stranger> silent;
    for (int i = 0; i < 20; ++i)
      if (silent.emplace_back(*hub); i % 2 == 0) silent.back().say(greeting());
    EXPECT_EQ(values(must(tcp_peer(*hub)->fetch("a"))), *numbers(1, 7));
  }
  EXPECT_EQ(values(must(early->fetch("a"))), *numbers(1, 7));
  EXPECT_EQ(early->stats().connects, 1U);
}

TEST(SilentPeers, leave_a_hub_without_descriptors_first) {
  const auto hub = tcp_hub();
  publish(*hub, "a", numbers(1, 7));
  Stranger silent(*hub);
  silent.say(greeting());
  std::vector<std::byte> theirs(wire::greeting_bytes);
  asio::read(silent.socket, asio::buffer(theirs));
  asio::io_context io;
  tcp::socket honest(io, tcp::v4());
  const auto at = *resolve(*parse_address(hub->address()));
  std::vector<int> all;
  for (int fd = 0; (fd = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0;) all.push_back(fd);
  ASSERT_EQ(errno, EMFILE);
  std::error_code failed;
  std::vector<std::byte> answer(wire::greeting_bytes + 1);
  honest.connect(at, failed);
  if (!failed) asio::write(honest, asio::buffer(request_for("a")), failed);
  if (!failed) asio::read(honest, asio::buffer(answer), failed);
  for (const int fd : all) close(fd);
  EXPECT_FALSE(failed) << failed.message();
  EXPECT_EQ(silent.until_closed(), 0U);
}

}  // namespace
}  // namespace weir::tensor

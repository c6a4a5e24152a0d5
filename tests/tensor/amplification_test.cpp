// How much memory N bytes from a stranger make a hub, or a peer, touch: a seeded search among conversations
// that announce much and send little. Counts the pages of the process, which has a hub over TCP and nothing
// else.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <list>
#include <random>
#include <thread>

#include "tensor/link/stream_frames.hpp"
#include "tests/tensor/hub_and_peer.hpp"

namespace weir::tensor {
namespace {

using asio::ip::tcp;
using frames::Kind;
using testing_support::must;
using testing_support::numbers;
using testing_support::publish;

constexpr std::size_t per_connection = std::size_t{96} << 10;  // fixed: sessions, buffers, the socket
constexpr std::size_t slack = std::size_t{8} << 20;            // of malloc, and of what is made once
constexpr std::size_t times_the_bytes = 8;

rdma::Result<rdma::Provider> no_rdma() { return rdma::fail(rdma::Errc::no_device, "this test has no RDMA"); }

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::vector<std::byte> greeting(std::uint64_t generation) {
  return wire::encode(wire::Greeting{
      .window = 2, .generation = generation, .records = {0, wire::slots * wire::record_bytes, 0}});
}
void append_frame(std::vector<std::byte>& to, Kind kind, std::uint32_t index, std::uint64_t claimed,
                  std::span<const std::byte> payload) {
  const auto header = frames::encode({kind, index, claimed});
  to.insert(to.end(), header.begin(), header.end());
  to.insert(to.end(), payload.begin(), payload.end());
}
void append_message(std::vector<std::byte>& to, const wire::Message& message) {
  const std::vector<std::byte> bytes = wire::encode(message);
  append_frame(to, Kind::message, 0, bytes.size(), bytes);
}
std::vector<std::byte> metadata_of(std::uint64_t bytes) {
  return encode(Metadata{bytes, {{"", {1, 8, 1}, {bytes}, 0}}}).value();
}

struct Search {
  std::mt19937_64 random;
  std::uint64_t upto(std::uint64_t most) { return random() % (most + 1); }
  // Mostly just below what a limit allows.
  std::uint64_t much() {
    static constexpr std::uint64_t edges[] = {16 << 10, 64 << 10, 1 << 20, 64 << 20, 250 << 20, 1 << 30};
    return edges[upto(5)] - upto(2000);
  }
  // Claims many tensors, and holds few.
  std::vector<std::byte> hollow_metadata() {
    std::vector<std::byte> block = metadata_of(upto(1000));
    const auto claimed = static_cast<std::uint32_t>(upto(1 << 20));
    std::memcpy(block.data() + 4, &claimed, sizeof claimed);
    block.resize(block.size() + upto(1500));
    return block;
  }
  void append_push(std::vector<std::byte>& to, std::uint32_t index) {
    wire::Push push{.index = index, .data_bytes = much(), .name = "g" + std::to_string(upto(3))};
    if (upto(2) == 0) {
      push.metadata_bytes = much();
      if (push.metadata_bytes <= wire::most_pushed_metadata) push.metadata_bytes += 4096;
    } else {
      push.metadata = upto(3) == 0 ? hollow_metadata() : metadata_of(push.data_bytes);
      push.metadata_bytes = push.metadata.size();
    }
    append_message(to, push);
    const std::vector<std::byte> some(upto(3000), std::byte{1});
    if (upto(1) == 0) append_frame(to, Kind::data, index, some.size() + upto(1 << 20), some);
  }
  std::vector<std::byte> conversation() {
    std::vector<std::byte> all = greeting(0);
    for (std::uint64_t i = upto(6), slot = upto(63); i > 0; --i, slot = (slot + 1) % wire::slots) {
      const auto index = static_cast<std::uint32_t>(wire::slots + slot);
      if (upto(2) > 0)
        append_push(all, index);
      else
        append_message(all,
                       wire::Request{.index = index, .wait = upto(1) == 0, .name = upto(1) == 0 ? "a" : "b"});
    }
    if (upto(5) == 0) all.resize(upto(all.size()));
    return all;
  }
};

TEST(Amplification, hub_touches_little_more_than_it_is_sent) {
  const char* const given = std::getenv("WEIR_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20261;
  Search search{std::mt19937_64(seed)};
  const auto hub = must(Hub::listen("tcp://127.0.0.1:0", no_rdma(), {.push = {.names = "*"}}));
  const auto at = *resolve(*parse_address(hub->address()));
  publish(*hub, "a", numbers(10, 7));
  const auto honest = must(Peer::connect(hub->address(), no_rdma()));
  must(honest->fetch("a"));
  double worst = 0;
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE("WEIR_SEED=" + std::to_string(seed) + ", round " + std::to_string(round));
    asio::io_context io;
    std::list<tcp::socket> strangers;
    malloc_trim(0);
    const std::size_t before = resident_bytes();
    std::size_t sent = 0;
    for (int i = 0; i < 60; ++i) {
      tcp::socket& socket = strangers.emplace_back(io);
      socket.connect(at);
      const std::vector<std::byte> all = search.conversation();
      std::error_code ended;
      sent += asio::write(socket, asio::buffer(all), ended);
    }
    // Ten answers later the hub has read what came before.
    for (int i = 0; i < 10; ++i) must(honest->fetch("a"));
    const std::size_t after = resident_bytes(), grown = after > before ? after - before : 0;
    EXPECT_LE(grown, strangers.size() * per_connection + times_the_bytes * sent + slack);
    const std::size_t fixed = strangers.size() * per_connection;
    worst = std::max(worst, static_cast<double>(grown) / static_cast<double>(sent + fixed));
  }
  std::printf("seed %llu: at worst %.2f bytes touched for a byte sent or that a connection may cost\n",
              static_cast<unsigned long long>(seed), worst);
}

// A hub that answers the first request with `update`, and nothing more.
void answer_once(tcp::acceptor& acceptor, const wire::MetadataUpdate& update) {
  tcp::socket peer = acceptor.accept();
  asio::write(peer, asio::buffer(greeting(4711)));
  std::vector<std::byte> theirs(wire::greeting_bytes + frames::header_bytes), all;
  asio::read(peer, asio::buffer(theirs));
  append_message(all, update);
  asio::write(peer, asio::buffer(all));
  std::error_code closed;
  std::vector<std::byte> rest(1 << 16);
  while (!closed) peer.read_some(asio::buffer(rest), closed);
}

TEST(Amplification, peer_touches_little_more_than_a_hub_sends) {
  const std::vector<std::byte> block = metadata_of(std::uint64_t{8} << 30);
  const wire::MetadataUpdate much_data{.index = wire::slots,
                                       .name_id = 1,
                                       .version = 1,
                                       .metadata_id = 1,
                                       .data_bytes = std::uint64_t{8} << 30,
                                       .metadata_bytes = block.size(),
                                       .metadata = block};
  wire::MetadataUpdate much_metadata = much_data;
  much_metadata.metadata.clear();
  much_metadata.metadata_bytes = std::uint64_t{250} << 20;
  for (const wire::MetadataUpdate& update : {much_data, much_metadata}) {
    asio::io_context io;
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    std::jthread hub([&] { answer_once(acceptor, update); });
    const std::size_t before = resident_bytes();
    const auto peer =
        must(Peer::connect("tcp://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port()), no_rdma()));
    const auto fetch = peer->start("a");
    const auto late = peer->wait(fetch, std::chrono::milliseconds(300));
    const std::size_t after = resident_bytes();
    EXPECT_FALSE(late);
    EXPECT_LE(after, before + slack);
  }
}

}  // namespace
}  // namespace weir::tensor

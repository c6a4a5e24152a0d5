// Writes of bytes that have an owner: the device reads them in place, and the owner is released afterwards.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/rdma/stream_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::test_provider;

constexpr std::size_t kib = 1024;

std::shared_ptr<const std::string> random_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  auto bytes = std::make_shared<std::string>(size, ' ');
  for (char& byte : *bytes) byte = static_cast<char>(random());
  return bytes;
}

class OwnedWrite : public testing_support::StreamTest {
 protected:
  // Collects what arrives at `reader`.
  static void collect(Stream& reader, std::string& into) {
    reader.on_readable([&reader, &into] {
      for (auto bytes = reader.readable(); !bytes.empty(); bytes = reader.readable()) {
        into.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        reader.consume(bytes.size());
      }
    });
  }

  // Writes all of `bytes` in the order of the calls, whatever room the peer has.
  void write_all(Stream& writer, const std::string& bytes, const Connection::Owner& owner) {
    std::size_t taken = 0;
    run_until([&] {
      taken += writer.try_write(asio::buffer(bytes.data() + taken, bytes.size() - taken), owner);
      return taken == bytes.size();
    });
  }
};

TEST_F(OwnedWrite, reaches_the_peer_without_a_copy) {
  auto [client, server] = connect_pair();
  const auto bytes = random_bytes(256 * kib, 1);
  std::string got;
  collect(server, got);
  write_all(client, *bytes, bytes);
  run_until([&] { return got.size() == bytes->size(); });
  EXPECT_EQ(got, *bytes);
  if (test_provider().kind() != Provider::Kind::weir && client.stats().uncopied == 0)
    GTEST_SKIP() << "this device does not page on demand";
  EXPECT_EQ(client.stats().uncopied, 256 * kib / StreamSettings().piece_bytes);
  EXPECT_EQ(client.stats().writes, client.stats().uncopied);
}

TEST_F(OwnedWrite, lets_go_of_the_owner_when_the_device_has_read) {
  auto [client, server] = connect_pair();
  auto bytes = random_bytes(128 * kib, 2);
  std::string got;
  collect(server, got);
  write_all(client, *bytes, bytes);
  if (test_provider().kind() != Provider::Kind::weir && client.stats().uncopied == 0)
    GTEST_SKIP() << "this device does not page on demand";
  const std::weak_ptr<const std::string> held = bytes;
  bytes.reset();
  EXPECT_FALSE(held.expired()) << "nobody has looked at the completions yet";
  run_until([&] { return held.expired(); });
  EXPECT_FALSE(client.end());
}

TEST_F(OwnedWrite, lets_go_of_the_owner_when_both_ends_close_at_once) {
  auto [client, server] = connect_pair();
  auto bytes = random_bytes(512 * kib, 3);
  run_until([&] { return client.try_write(asio::buffer(*bytes), bytes) > 0; });
  const std::weak_ptr<const std::string> held = bytes;
  bytes.reset();
  server.close();
  client.close();
  run_until([&] { return held.expired(); });
  run_until([&] { return engine->stats().connections == 0; });
}

TEST_F(OwnedWrite, keeps_its_place_among_writes_that_are_copied) {
  const StreamSettings small{.receive_buffer_bytes = 96 << 10, .send_buffer_bytes = 16 << 10};
  auto [client, server] = connect_pair(small, small);
  std::string got, sent;
  collect(server, got);
  std::mt19937 random(4);
  for (std::uint32_t i = 0; i < 60; ++i) {
    // Inline, staged, in place; and some of each kind that exceed the peer's room.
    const std::size_t sizes[] = {1 + random() % 200, 1 + random() % (20 * kib),
                                 40 * kib + random() % (200 * kib)};
    const auto bytes = random_bytes(sizes[random() % 3], i);
    write_all(client, *bytes, random() % 4 == 0 ? nullptr : bytes);
    sent += *bytes;
  }
  run_until([&] { return got.size() == sent.size(); });
  EXPECT_TRUE(got == sent);
}

TEST_F(OwnedWrite, takes_nothing_before_the_connection_is_there_and_after_its_end) {
  const auto bytes = random_bytes(128 * kib, 6);
  Acceptor acceptor = listen();
  Stream early(*engine);
  std::optional<std::error_code> outcome;
  const StreamSettings settings;
  async_connect(early, acceptor.local_endpoint(), settings, [&](std::error_code error) { outcome = error; });
  EXPECT_EQ(early.try_write(asio::buffer(*bytes), bytes), 0u);
  early.close();
  run_until([&] { return outcome.has_value(); });

  auto [client, server] = connect_through(acceptor);
  server.close();
  run_until([&, &reader = client] { return static_cast<bool>(reader.end()); });
  EXPECT_EQ(client.try_write(asio::buffer(*bytes), bytes), 0u);
  EXPECT_EQ(bytes.use_count(), 1);
}

TEST_F(OwnedWrite, is_copied_where_the_settings_say_so) {
  auto [client, server] = connect_pair({.zero_copy_bytes = 0});
  auto bytes = random_bytes(128 * kib, 5);
  std::string got;
  collect(server, got);
  write_all(client, *bytes, bytes);
  EXPECT_EQ(bytes.use_count(), 1);
  EXPECT_EQ(client.stats().uncopied, 0u);
  run_until([&] { return got.size() == bytes->size(); });
}

}  // namespace
}  // namespace weir::rdma

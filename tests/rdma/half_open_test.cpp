// Connections that a peer requests and never completes: they occupy a seat only for a short time.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rdma/verbs/cm.hpp"
#include "tests/rdma/stream_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::StreamTest;

class HalfOpen : public StreamTest {
 protected:
  // The libraries are loaded once the engine exists.
  void SetUp() override {
    StreamTest::SetUp();
    channel.emplace(std::move(*EventChannel::create()));
  }
  // The listener accepts it, but never learns that we are ready, because without a queue pair of its own the
  // connection manager leaves that to us.
  void leave_half_open(const Endpoint& server, const char* from = "127.0.0.1") {
    Endpoint own(asio::ip::make_address(from), 0);
    CmId& id = ids.emplace_back(std::move(*CmId::create(*channel)));
    Endpoint copy = server;
    ASSERT_EQ(rdma_resolve_addr(id.get(), own.data(), copy.data(), 2000), 0);
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(rdma_resolve_route(id.get(), 2000), 0);
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    rdma_conn_param parameters{};
    parameters.retry_count = 6;
    parameters.qp_num = 0x1234;
    ASSERT_EQ(rdma_connect(id.get(), &parameters), 0);
    expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  }
  void expect(rdma_cm_event_type wanted) {
    std::optional<CmEvent> event;
    run_until([&] {
      io.poll();
      event = channel->next();
      return event.has_value();
    });
    ASSERT_EQ(event->type, wanted) << rdma_event_str(event->type);
  }

  std::optional<EventChannel> channel;
  std::vector<CmId> ids;
};

TEST_F(HalfOpen, a_backlog_full_of_them_lets_others_in_soon) {
  constexpr std::uint32_t seats = 4;
  Acceptor acceptor = listen({}, seats);
  ids.reserve(seats);
  for (std::uint32_t i = 0; i < seats; ++i) leave_half_open(acceptor.local_endpoint());
  std::optional<Stream> accepted;
  acceptor.async_accept([&](std::error_code failed, Stream stream) {
    ASSERT_FALSE(failed);
    accepted.emplace(std::move(stream));
  });
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!accepted && std::chrono::steady_clock::now() < give_up) {
    Stream client(*engine);
    std::optional<std::error_code> outcome;
    async_connect(client, acceptor.local_endpoint(), StreamSettings{},
                  [&](std::error_code failed) { outcome = failed; });
    run_until([&] { return outcome.has_value(); });
    if (!*outcome) run_until([&] { return accepted.has_value(); });
  }
  EXPECT_TRUE(accepted) << "they keep everybody out";
}

TEST_F(HalfOpen, address_with_most_makes_room_for_another) {
  constexpr std::uint32_t seats = 4;
  Acceptor acceptor = listen({}, seats);
  ids.reserve(seats);
  for (std::uint32_t i = 0; i < seats; ++i) leave_half_open(acceptor.local_endpoint(), "127.0.0.2");
  std::optional<std::error_code> accepted, connected;
  acceptor.async_accept([&](std::error_code failed, Stream) { accepted = failed; });
  Stream client(*engine);
  async_connect(client, acceptor.local_endpoint(), StreamSettings{},
                [&](std::error_code failed) { connected = failed; });
  run_until([&] { return connected.has_value(); });
  ASSERT_FALSE(*connected) << connected->message();
  run_until([&] { return accepted.has_value(); });
  EXPECT_FALSE(*accepted);
}

}  // namespace
}  // namespace weir::rdma

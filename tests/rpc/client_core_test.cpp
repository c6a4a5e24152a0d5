// A client whose server is a sequence of bytes: unsolicited answers, and what remains of its calls when its
// io_context no longer runs.
#include "rpc/client/client_core.hpp"

#include <gtest/gtest.h>

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <memory>

#include "rpc/client.hpp"

namespace weir::rpc {
namespace {

// Accepts nothing that is written.
class StuckTransport final : public Transport {
 public:
  void start(TransportUser& user) override { user_ = &user; }
  std::size_t write(std::span<const asio::const_buffer>) override { return 0; }
  void read_on(bool) override {}
  bool end_output() override { return true; }
  void close() override { user_ = nullptr; }
  std::string peer() const override { return "stuck"; }

  void bring(const FrameHeader& header) {
    std::array<std::byte, frame_header_bytes> bytes;
    encode(header, bytes.data());
    if (user_ != nullptr) user_->received(bytes);
    if (user_ != nullptr) user_->round_ended();
  }

 private:
  TransportUser* user_ = nullptr;
};

class ClientCoreTest : public testing::Test {
 protected:
  std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>(1);
  const std::shared_ptr<StuckTransport> transport = std::make_shared<StuckTransport>();

  std::shared_ptr<ClientCore> connected(const ConnectionLimits& limits = {}) {
    auto core = std::make_shared<ClientCore>(*io, transport, limits);
    core->start();
    return core;
  }
};

TEST_F(ClientCoreTest, answers_no_more_pings_than_its_server_reads) {
  ConnectionLimits limits;
  limits.max_waiting_bytes = 4000;
  const auto core = connected(limits);
  FrameHeader ping;
  ping.kind = FrameKind::ping;
  for (ping.id = 1; ping.id < 10'000; ++ping.id) transport->bring(ping);
  EXPECT_GT(core->waiting_bytes(), 0u);
  EXPECT_LE(core->waiting_bytes(), limits.max_waiting_bytes + frame_header_bytes);
}

// The call has failed or its reply has arrived, and the notification of its waiter is queued in the
// io_context.
TEST_F(ClientCoreTest, calls_whose_end_is_on_its_way_go_with_the_io_context) {
  for (const bool sent : {false, true}) {
    SCOPED_TRACE(sent);
    io = std::make_unique<asio::io_context>(1);
    auto owned = std::make_shared<int>(1);
    const std::weak_ptr<int> left = owned;
    {
      auto client = std::make_unique<Client>(connected());
      bool begun = false;
      const auto call = [](Client& through, std::shared_ptr<int>, bool late,
                           bool& done) -> asio::awaitable<void> {
        auto calling = through.call_by_name<int>("nobody");
        if (late) through.close();  // ends it before it is awaited, a turn later
        if (late) co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
        done = true;
        co_await std::move(calling);
      };
      if (!sent) client->close();
      asio::co_spawn(*io, call(*client, std::move(owned), sent, begun), asio::detached);
      while (!begun && io->poll_one() > 0) {
      }
      EXPECT_TRUE(begun);
      io.reset();
    }
    EXPECT_TRUE(left.expired());
  }
}

}  // namespace
}  // namespace weir::rpc

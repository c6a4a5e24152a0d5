// A cancellation that arrives after the wait has already ended and its connection is gone.
#include <gtest/gtest.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <functional>
#include <optional>

#include "tests/rdma/channel_pair.hpp"

namespace weir::rdma {
namespace {

class LateCancel : public testing_support::ChannelTest {
 protected:
  asio::cancellation_signal stop;
  std::optional<std::error_code> outcome;

  auto cancellable() {
    return asio::bind_cancellation_slot(stop.slot(),
                                        [this](std::error_code failed, auto&&...) { outcome = failed; });
  }
  // Runs the engine's round, which frees what was closed, and then the cancellation, before the operation
  // learns that it was ended by the closing.
  void close_and_then_cancel(const std::function<void()>& close) {
    engine->kick();
    asio::post(io, [this] { stop.emit(asio::cancellation_type::all); });
    close();
    run_until([this] { return outcome.has_value(); });
    EXPECT_EQ(*outcome, asio::error::operation_aborted);
  }
};

TEST_F(LateCancel, of_a_channel_s_receive) {
  auto [client, server] = channel_pair();
  server.async_receive(cancellable());
  close_and_then_cancel([&closed = server] { closed.close(); });
}

TEST_F(LateCancel, of_a_stream_s_read) {
  auto [client, server] = connect_pair();
  char byte = 0;
  server.async_read_some(asio::buffer(&byte, 1), cancellable());
  close_and_then_cancel([&closed = server] { closed.close(); });
}

TEST_F(LateCancel, of_a_connect) {
  ChannelAcceptor acceptor = listen_channel();
  Channel channel(*engine);
  async_connect(channel, acceptor.local_endpoint(), ChannelSettings(), cancellable());
  close_and_then_cancel([&] { channel.close(); });
}

TEST_F(LateCancel, of_an_accept) {
  ChannelAcceptor acceptor = listen_channel();
  acceptor.async_accept(cancellable());
  close_and_then_cancel([&] { acceptor.close(); });
}

}  // namespace
}  // namespace weir::rdma

// Two channels connected to each other in one io_context.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "rdma/channel.hpp"
#include "tests/rdma/stream_pair.hpp"

namespace weir::rdma::testing_support {

inline std::string text(const Message& message) {
  return {reinterpret_cast<const char*>(message.data()), message.size()};
}

// A pattern that shows any misplaced byte.
inline std::string pattern(std::size_t bytes, std::size_t salt = 0) {
  std::string made(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<char>((i + salt) * 7 + (i + salt) / 251);
  return made;
}

class ChannelTest : public StreamTest {
 protected:
  ChannelAcceptor listen_channel(const ChannelSettings& settings = {}) {
    ChannelAcceptorSettings wanted;
    wanted.channel = settings;
    Result<ChannelAcceptor> acceptor = ChannelAcceptor::listen(*engine, test_address(), wanted);
    if (!acceptor) throw std::runtime_error(acceptor.error().what);
    return std::move(*acceptor);
  }

  std::pair<Channel, Channel> channel_pair(const ChannelSettings& client_settings = {},
                                           const ChannelSettings& server_settings = {}) {
    ChannelAcceptor acceptor = listen_channel(server_settings);
    return connect_channels(acceptor, client_settings);
  }

  std::pair<Channel, Channel> connect_channels(ChannelAcceptor& acceptor,
                                               const ChannelSettings& settings = {}) {
    return connect_ends<Channel>(acceptor, settings);
  }

  std::string receive_text(Channel& from) {
    std::optional<Message> got;
    run_until([&] { return (got = from.try_receive()).has_value() || from.end(); });
    return got ? text(*got) : "ended: " + from.error().what;
  }
};

}  // namespace weir::rdma::testing_support

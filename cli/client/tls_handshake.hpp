// Turns a connected stream into a Connection that uses TLS.
#pragma once

#include <asio/ssl/stream.hpp>
#include <memory>
#include <utility>

#include "cli/client/asio_connection.hpp"
#include "cli/client/asio_loop.hpp"
#include "cli/client/tls_context.hpp"

namespace weir::client {

template <class Lower>
Result<std::unique_ptr<Connection>> start_tls(AsioLoop& loop, Lower lower, const Endpoint& endpoint,
                                              asio::ssl::context& context, ConnectionEvents& events,
                                              Milliseconds limit) {
  using Stream = asio::ssl::stream<Lower>;
  auto stream = std::make_shared<Stream>(std::move(lower), context);
  if (auto named = name_server(stream->native_handle(), endpoint.tls); !named)
    return std::unexpected(std::move(named.error()));
  struct Outcome {
    bool known = false;
    std::error_code error;
  };
  const auto outcome = std::make_shared<Outcome>();
  // The handler keeps the stream alive after a time-out until the cancelled handshake has released it.
  stream->async_handshake(asio::ssl::stream_base::client, [outcome, stream](std::error_code error) {
    outcome->known = true;
    outcome->error = error;
  });
  if (!loop.turn_until([&] { return outcome->known; }, limit)) {
    std::error_code ignored;
    stream->lowest_layer().close(ignored);
    return fail(ErrorKind::timed_out, "TLS with " + address_of(endpoint) +
                                          " did not finish its handshake in time; "
                                          "does that port speak TLS?");
  }
  if (outcome->error)
    return std::unexpected(handshake_error(endpoint, stream->native_handle(), outcome->error));
  return std::make_unique<AsioConnection<Stream>>(std::move(stream), events);
}

}  // namespace weir::client

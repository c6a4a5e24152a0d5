// Makes a Connection of any Asio byte stream: asio::ssl::stream over a TCP socket or over
// rdma::Stream, or rdma::Stream itself.
//
// Lifetime: operations in progress hold the stream by shared_ptr, so a Connection may be destroyed at any
// time outside its own events. Later completions are dropped.
#pragma once

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/ssl/error.hpp>
#include <asio/write.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/client/connection.hpp"

namespace weir::client {

template <class Stream>
class AsioConnection final : public Connection {
 public:
  // The stream is connected, and its handshake is complete.
  AsioConnection(std::shared_ptr<Stream> stream, ConnectionEvents& events)
      : state_(std::make_shared<State>(std::move(stream), events)) {
    state_->read(state_);
  }
  ~AsioConnection() override {
    state_->events = nullptr;
    state_->close();
  }

  std::size_t write(std::span<const std::byte> bytes, const std::shared_ptr<const void>&) override {
    return state_->write(state_, bytes);
  }

 private:
  static constexpr std::size_t receive_bytes = 64 * 1024;
  static constexpr std::size_t most_waiting_bytes = 1024 * 1024;  // written but not yet taken by the stream

  struct State {
    State(std::shared_ptr<Stream> s, ConnectionEvents& e)
        : stream(std::move(s)), events(&e), input(receive_bytes) {}

    std::shared_ptr<Stream> stream;
    ConnectionEvents* events;  // null: the Connection is gone
    std::vector<std::byte> input;
    std::vector<std::byte> sending;  // given to the stream
    std::vector<std::byte> waiting;  // sent next
    bool refused = false;            // write() did not take everything
    bool over = false;

    void close() {
      over = true;
      std::error_code ignored;
      stream->lowest_layer().close(ignored);
    }

    void read(const std::shared_ptr<State>& self) {
      stream->async_read_some(asio::buffer(input), [self](std::error_code error, std::size_t length) {
        if (!self->events || self->over) return;
        if (error) return self->end(error);
        self->events->received(std::span(self->input).first(length));
        if (self->events && !self->over) self->read(self);
      });
    }

    std::size_t write(const std::shared_ptr<State>& self, std::span<const std::byte> bytes) {
      if (over) return 0;
      const auto room = most_waiting_bytes - std::min(most_waiting_bytes, waiting.size());
      const auto taken = std::min(room, bytes.size());
      waiting.insert(waiting.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken));
      if (taken < bytes.size()) refused = true;
      if (sending.empty() && !waiting.empty()) send(self);
      return taken;
    }

    void send(const std::shared_ptr<State>& self) {
      sending.swap(waiting);
      asio::async_write(*stream, asio::buffer(sending), [self](std::error_code error, std::size_t) {
        self->sending.clear();
        if (!self->events || self->over) return;
        if (error) return self->end(error);
        if (!self->waiting.empty()) self->send(self);
        if (std::exchange(self->refused, false)) self->events->writable();
      });
    }

    void end(std::error_code error) {
      if (std::exchange(over, true)) return;
      const bool orderly = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
      events->ended(
          Error{ErrorKind::closed, orderly ? "Server closed the connection" : "Error: " + error.message()});
    }
  };

  std::shared_ptr<State> state_;
};

}  // namespace weir::client

// A link over one TCP connection: frames of messages, data and records (stream_frames.hpp), in the clear or
// inside TLS (tcp_bytes.hpp).
//
// A transfer goes from where the source lies to the socket, and from the socket to its destination: one copy
// into the kernel and one out of it. It is split into parts, so that messages do not wait for a long
// transfer. TCP's flow control takes the place of credits. READs do not exist here: can_read() is false.
//
// A peer that accepts nothing of what it asked for is given up after 10 s, as over RDMA; so is a host that is
// gone. Ownership: the pending wait for input owns the link; the user of the pointer calls leave(), at the
// latest in on_end(). Threading: the io_context's thread.
#pragma once

#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tensor/link/link.hpp"
#include "tensor/link/outbox.hpp"
#include "tensor/link/stream_frames.hpp"
#include "tensor/link/tcp_bytes.hpp"

namespace weir::tensor {

class TcpLink final : public Link, private FrameReader::Sink, public std::enable_shared_from_this<TcpLink> {
 public:
  // Starts to connect. `events` receives the outcome: on_up() or on_end().
  static TcpLink& connect(asio::io_context& io, const asio::ip::tcp::endpoint& hub, Encryption encryption,
                          LinkEvents& events, std::function<void()> on_up);
  // What a connection takes of its listener's: a place until it ends, and a stay among the newcomers.
  struct Place {
    std::shared_ptr<void> counted;
    std::shared_ptr<transport::Newcomers> newcomers;
    Encryption encryption = {};
  };
  // Makes a hub's end of a connection. `on_up` runs once the peer has sent its greeting, and sets the events;
  // a peer that sends none is dropped silently.
  static void accept(asio::ip::tcp::socket socket, std::uint64_t generation, Place place,
                     std::function<void(TcpLink&)> on_up);
  ~TcpLink() override;

  void set_events(LinkEvents& events) { events_ = &events; }

  // Link:
  bool is_up() const override { return state_ == State::up; }
  void send(const wire::Message& message) override;
  void write(Transfer transfer) override;
  Result<wire::Memory> expect(std::uint32_t index, std::span<std::byte> memory) override;
  void forget(std::uint32_t index) override;
  Result<std::vector<wire::Memory>> expose(const Source& source) override;
  Result<void> read(std::uint32_t index, std::span<const wire::Memory> sources) override;
  bool can_read() const override { return false; }
  void leave() override;
  void break_off(const Error& cause) override;
  std::uint64_t generation() const override { return theirs_; }
  rdma::Endpoint remote() const override { return remote_; }
  bool is_certified() const override { return bytes_.is_peer_certified(); }
  std::optional<std::uint64_t> arrived(std::uint32_t index) const override;

 private:
  struct Expected {
    std::uint32_t index = 0;
    std::span<std::byte> memory;
    std::uint64_t received = 0;
    bool there = false;
  };
  // What is being written to the socket: our own bytes, pieces of a source, our own bytes.
  struct Going {
    std::vector<std::byte> head, tail;
    std::vector<std::span<const std::byte>> left;
    std::shared_ptr<const Source> source;
  };
  enum class State : std::uint8_t { connecting, securing, greeting, up, ended };

  explicit TcpLink(asio::ip::tcp::socket socket)
      : bytes_(std::move(socket)), timer_(bytes_.socket().get_executor()) {}

  // FrameReader::Sink:
  bool on_greeting(std::span<const std::byte> greeting) override;
  bool on_message(std::span<const std::byte> message) override;
  std::span<std::byte> room_for(std::uint32_t index, std::uint64_t most) override;
  void filled(std::uint32_t index, std::size_t bytes) override;
  bool on_record(const wire::Record& record) override;

  void begin(transport::TlsSide side, std::uint64_t generation, Encryption encryption);
  void shake_hands();
  void greet();
  void wait_for(transport::StreamStep::Needs needs, void (TcpLink::*next)());
  void read_some();
  void read_later(transport::StreamStep::Needs needs);
  void pump_soon();
  void pump();
  void pump_on();
  bool compose();
  void compose_data(Outgoing& outgoing);
  void start_timer();
  bool broke(std::string what);
  void end(Error cause);
  void end_of_bytes();
  void close();

  TcpBytes bytes_;
  asio::steady_timer timer_;
  State state_ = State::connecting;
  LinkEvents* events_ = nullptr;
  std::function<void(TcpLink&)> on_up_;
  rdma::Endpoint remote_;
  std::uint64_t ours_ = 0, theirs_ = 0;  // generations
  std::shared_ptr<void> counted_;        // the listener's count of links
  FrameReader reader_{*this};
  std::array<Expected, wire::slots> expected_;
  Outbox outbox_;
  Going going_;
  bool pumping_ = false;  // pump() is posted, or waits for the socket
  bool left_ = false;
  std::uint64_t taken_ = 0, taken_before_ = 0;  // bytes that the socket accepted, now and at the last tick
  int idle_ticks_ = 0;
};

}  // namespace weir::tensor

// One client that speaks HTTP/1.1 with a server that speaks frames: requests become frames as a client of the
// library would send them, replies become responses.
//
// So whatever holds for a client holds here: limits, rights, interceptors, turns, deadlines. What differs:
//   - one request is under way at a time; those sent ahead wait, and beyond 64 KiB of them nothing is read.
//   - A request's credentials go before it, each time: a proxy may send many users' requests over one
//     connection.
//   - Arguments travel as JSON (json_codec) until the server knows that the caller may call.
//   - Pings are answered only while a request is under way. So a client that holds its connection and sends
//     nothing is given up, as one that does not answer.
//
// The time that a client has for the head of its first request is PeerLimits::first_frame, for that of a
// later one PeerLimits::keepalive, and from its first byte on PeerLimits::frame, for the body as well, with a
// second more for each 64 KiB. It must take some of what waits for it within PeerLimits::keepalive.
//
// Pure: bytes and time in, bytes out. Threading: the connection's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rpc/http/answer.hpp"
#include "rpc/http/request_reader.hpp"
#include "rpc/http/wanted.hpp"
#include "rpc/http_options.hpp"
#include "rpc/server/peer_watch.hpp"
#include "rpc/server/registry.hpp"
#include "rpc/wire/deadline.hpp"
#include "rpc/wire/frame.hpp"

namespace weir::rpc::http {

// What all conversations of a server go by.
struct Terms {
  HttpOptions options;
  PeerLimits peer;
  std::chrono::milliseconds linger{2000};  // until the client has closed, too
  const Registry* registry = nullptr;
  bool sends_credentials = false;  // the server asks who calls
};

class Conversation final : private FrameSink {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // `over_loopback`: see Surroundings.
  Conversation(std::shared_ptr<const Terms> terms, bool over_loopback, TimePoint now);

  // From the client; then next() until it has nothing more.
  void received(std::string_view bytes, TimePoint now);
  // Appends the next frames for the server. False: nothing is to be done before something comes.
  bool next(Bytes& frames, TimePoint now);
  // From the server; next() may have something to do again.
  void replied(std::span<const std::byte> bytes, TimePoint now);
  // The server sends nothing more.
  void server_ended(TimePoint now);
  // Ends it: there is no memory for what this client sends or gets.
  void refuse(const Error& why, TimePoint now);
  void on_time(TimePoint now);

  // For the client: what is to be sent, and how much of it was.
  std::string_view unsent() const { return std::string_view(out_).substr(sent_); }
  void sent(std::size_t bytes, TimePoint now);

  // next() has something to do, though nothing comes.
  bool has_more() const { return state_ != State::over && unsent().empty() && (ping_ || looks_again_); }
  bool reads_on() const { return input().size() <= max_ahead_bytes; }
  // Nothing follows what is unsent.
  bool is_over() const { return state_ == State::over; }
  // When on_time() is due; when it is over: when the connection is to be closed, whoever still holds it.
  TimePoint until() const { return until_; }
  std::size_t held_bytes() const {
    return in_.capacity() + reader_.body().capacity() + out_.capacity() + replies_.arrived_bytes();
  }

 private:
  enum class State : std::uint8_t { head, body, running, over };
  static constexpr std::size_t max_ahead_bytes = 64 << 10;

  bool on_frame(Frame& frame) override;
  bool on_reply(const Frame& frame);
  bool take_input(Bytes& frames);
  std::string_view input() const { return std::string_view(in_).substr(taken_); }
  void taken(std::size_t bytes);
  void begin_request(Bytes& frames);
  void send_request(Bytes& frames);
  Answer answer_of_reply(const Frame& reply) const;
  Answer answer_of_result(std::span<const std::byte> result) const;
  void finish(const Answer& answer);
  void say(const Answer& answer, bool closes);
  void end();
  bool is_idle() const { return state_ == State::head && input().empty(); }
  void wait(std::chrono::milliseconds time) { until_ = deadline_from(now_, time); }
  void wait_for_request();

  const std::shared_ptr<const Terms> terms_;
  const bool over_loopback_;
  TimePoint now_;
  State state_ = State::head;
  std::string in_;
  std::size_t taken_ = 0;  // of in_, by the reader
  RequestReader reader_;
  TimePoint began_;  // the request that is under way
  std::optional<Wanted> wanted_;
  std::uint64_t id_ = 0;  // of the last request
  FrameReader replies_;
  std::string out_;
  std::size_t sent_ = 0;  // of out_
  std::uint64_t answered_ = 0;
  bool greeted_ = false;
  bool continue_due_ = false;  // the client waits for 100 Continue
  bool draining_ = false;
  bool looks_again_ = false;           // for a request that was sent ahead
  std::optional<std::uint64_t> ping_;  // to be answered
  TimePoint until_;
};

}  // namespace weir::rpc::http

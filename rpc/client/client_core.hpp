// The caller's end of a connection, without the types of the functions that are called: numbers calls,
// matches replies, keeps deadlines.
//
// Every call that begin() accepted ends exactly once: with its reply, its deadline, its cancellation, or the
// end of the connection. Calls are kept in slots; a call's number is (generation << 24 | slot), so a reply
// that comes after its call ended matches no call. Memory: one slot per call in flight, at most
// max_in_flight. Threading: the io_context's thread.
//
// Ownership: shared. A coroutine that waits for a call often owns its client, as a pool's coroutines do:
// client, slot, coroutine and client then form a cycle that nobody outside holds. When the io_context is
// destroyed, one of its services (client_core.cpp) frees the calls of all its clients, as Asio frees other
// operations that never completed.
#pragma once

#include <array>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "rpc/authentication.hpp"
#include "rpc/client/server_watch.hpp"
#include "rpc/link/deadline_timer.hpp"
#include "rpc/link/frame_link.hpp"
#include "rpc/metadata.hpp"
#include "rpc/trace_context.hpp"

namespace weir::rpc {

using Clock = std::chrono::steady_clock;
class ClientInterceptor;
struct MethodSchema;
using ClientChain = std::vector<std::shared_ptr<ClientInterceptor>>;

// How a call is made; all have defaults. Buffers and spans must stay until the call ends. The constructor
// makes it no aggregate: GCC 12 destroys an aggregate temporary in an awaited expression twice, so options
// have a name.
struct CallOptions {
  CallOptions() = default;

  std::chrono::microseconds timeout{0};        // 0: the connection's default
  std::span<const std::byte> attachment = {};  // goes with the arguments; over RDMA from a copy
  Buffer* attachment_given = nullptr;          // instead: of Client::buffer(), taken if the call is sent
  std::span<std::byte> reply_into = {};        // where the reply's attachment goes if it fits
  Buffer* reply_attachment = nullptr;  // takes the reply's attachment (a view of reply_into if that was used)
  bool idempotent = false;             // may run twice; required for retries
  const TraceContext* trace = nullptr;  // the trace that the call belongs to; read when it is sent
  const Metadata* metadata = nullptr;   // goes with the call, where the server knows it; read when it is sent
  Metadata* reply_metadata = nullptr;   // takes what comes back with the reply
  std::uint64_t key = 0;                // of a pool's consistent hash
  std::chrono::microseconds hedge_after{0};  // instead of the pool's HedgingOptions::after; below 0: never
  std::uint8_t codec = 0;                    // of a body that is already encoded (call_encoded)
};

struct ConnectionLimits {
  FrameLimits frame;  // of what comes: results, items
  // Limits of what this end sends: arguments, items. A server of the same release accepts as much unless
  // configured otherwise.
  FrameLimits request{.body_bytes = 4u << 20, .attachment_bytes = 128u << 20};
  std::uint32_t max_in_flight = 65536;
  std::size_t max_waiting_bytes = std::size_t{1} << 30;  // not yet taken by the transport
  std::chrono::microseconds timeout{30'000'000};         // of calls that do not say; 0: for ever
  // Bytes that a stream received and that wait to be read. No item sent or received may be larger.
  std::uint32_t stream_window_bytes = 1u << 20;
  // A server from which nothing came for so long, though it was sent a ping, has gone: the connection ends
  // with Errc::connection_lost. Below 3 ms: never.
  std::chrono::milliseconds keepalive{120'000};
};

// A waiting call, with the type of its result.
class PendingCall {
 public:
  // Called once, and may free itself. `body` is valid during the call.
  virtual void complete(Result<std::span<const std::byte>> body) = 0;
  // Called instead of complete() when the io_context is destroyed: frees the call.
  virtual void abandon() = 0;
  // The channel of a call that is a stream.
  virtual StreamChannel* stream() { return nullptr; }

 protected:
  ~PendingCall() = default;
};

class ClientsOfContext;

class ClientCore : public FrameLink {
 public:
  ClientCore(asio::io_context& io, TransportPtr transport, const ConnectionLimits& limits);
  ~ClientCore() override;

  struct Draft {
    std::size_t begin = 0;
    std::uint64_t method = 0;
    std::uint16_t flags = 0;
    FrameKind kind = FrameKind::request;  // or ping, which pong answers
    std::uint8_t codec = 0;
    std::uint64_t schema = 0;     // that it told of, or 0
    std::string_view function{};  // its name, if the program has its types
  };
  // Starts a request. Append the arguments (about `expected` bytes), then commit() sends it.
  Result<Draft> begin(std::uint64_t method, BodySize expected = 0);
  // The same with the arguments that `encode(BodyPlace)` writes; if it throws, the request was never begun.
  template <class Encode>
  void append(const Draft& draft, Encode encode) {
    try {
      encode(body());
    } catch (...) {
      drop_frame(draft.begin);
      throw;
    }
  }
  // What the options, and the caller's types, put before the arguments. Null: it has none to tell. If it
  // fails the request was never begun.
  Result<void> put_before_arguments(Draft& draft, const CallOptions& options, const MethodSchema* schema);
  void intercept(ClientChain chain) { chain_ = std::move(chain); }
  const ClientChain& chain() const { return chain_; }
  // Sends the request and returns the number of the call, which must then be claimed or cancelled.
  Result<std::uint64_t> commit(const Draft& draft, const CallOptions& options);
  // `call` is told when the call ends; posts the end if the call has ended already.
  void claim(std::uint64_t id, PendingCall& call);
  // Ends the call here, and tells the server.
  void cancel(std::uint64_t id);
  // For calls that failed before they were sent.
  void post_failure(PendingCall& call, Error why);
  // Closes. Calls under way end with this error, in a turn of their own, since waiting code must not run
  // inside a destructor. Later calls end with it, too.
  void end_because(Error why);
  // Frees the calls under way, which never complete, because the io_context is being destroyed.
  void abandon_calls();
  // Sends the token that `provider` returns, now and whenever the server says that the token is no longer
  // valid. Fails if there is no token the first time. Later, calls refused for lack of a token make the
  // provider be asked again.
  Result<void> present(TokenProvider provider);
  // Runs once, when the server's hello came or the connection ended; null: nobody waits for that any more.
  void when_greeted(std::function<void()> greeted) { greeted_ = std::move(greeted); }
  // Sends pings from now on, and ends the connection when the server has gone (ConnectionLimits::keepalive).
  void keep_alive();
  // Why the connection has ended.
  const Error& end_cause() const { return end_cause_; }
  // How many tokens it has sent.
  std::uint32_t tokens_sent() const { return tokens_sent_; }
  bool draining() const { return draining_; }
  const ConnectionLimits& limits() const { return limits_; }
  std::uint32_t in_flight() const { return in_flight_; }

 private:
  enum class State : std::uint8_t { free, unclaimed, waiting, ended };
  struct Slot {
    State state = State::free;
    std::uint64_t generation = 1;
    PendingCall* call = nullptr;
    Buffer* attachment = nullptr;
    Metadata* metadata = nullptr;
    std::span<std::byte> into;
    std::uint64_t schema = 0;   // that it told of, or 0
    std::string_view function;  // its name, if the program has its types
    std::uint32_t tokens = 0;   // that had been sent before it
    bool lent = false;          // the request's attachment is the caller's memory
    bool filling = false;       // `into` is being filled
    Clock::time_point deadline = Clock::time_point::max();
    std::unique_ptr<Result<Bytes>> early;  // the end of a call that was not claimed yet
  };

  bool on_arrival(Frame& frame) override;
  bool stream_frame(const Frame& frame);
  Result<void> send_token();
  bool give_up(const Error& why, std::uint64_t culprit = 0);
  void look_later();
  void look_at_server();
  void on_round_end() override { leave_if_drained(); }
  void on_end(const Error& cause) override;
  void on_hello() override { greet(); }
  void greet();
  void put_types(Draft& draft, const MethodSchema& schema);
  void learn(const Slot& slot, std::uint16_t status);
  void end_calls(const Error& cause, std::uint64_t culprit, const std::string& who);
  void close_calls(const Error& why);
  Buffer make_attachment(const FrameHeader& header) override;
  bool has_place_for(const FrameHeader& header) override;
  bool answers_pings() const override { return waiting_bytes() <= limits_.max_waiting_bytes; }
  void add_slot();
  Buffer attachment_of(const CallOptions& options);
  Slot* find(std::uint64_t id);
  void end(Slot& slot, Result<std::span<const std::byte>> body);
  void release(Slot& slot);
  void leave_if_drained();
  DeadlineTimer::Look end_late(Clock::time_point now);

  friend class ClientsOfContext;
  ClientsOfContext* context_clients_;  // null once it swept this one
  const ConnectionLimits limits_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::uint32_t in_flight_ = 0;
  ClientChain chain_;
  bool draining_ = false;
  std::function<void()> greeted_;
  std::array<std::uint64_t, 32> sent_schemas_{};  // that the server heard the text of, by their last bits
  TokenProvider token_;
  std::uint32_t tokens_sent_ = 0;
  Error end_cause_{Errc::closed, "the connection is closed"};
  DeadlineTimer deadlines_;
  std::optional<ServerWatch> server_;  // once it is looked at
  asio::steady_timer next_look_;  // cancelled with the calls: a closed client keeps no io_context running
};

}  // namespace weir::rpc

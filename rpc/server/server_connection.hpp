// One client of a server: takes its requests, runs the functions, sends the replies.
//
// A plain function runs while its request is handled and its result is encoded straight into the queue. A
// coroutine runs on its own, with a copy of its arguments, and may be cancelled: by the caller, by the
// deadline, by the end of the connection.
//
// Memory is bounded. Past the limits of what is in flight, of the arguments of that, or of what waits to be
// read by the client, requests wait for their turn as they came, compressed ones too, while all that is for
// calls that run is heard: what cancels them, their streams, pings. Once what waits to be read and what waits
// to run are max_waiting_bytes together, nothing is read until there is room, so that a client that asks for
// too much is held back by its own connection; what came in the same read (256 KiB of a socket) still waits.
// Both limits shrink while all clients together hold much of the server's memory (MemoryBudget::share).
// All of it, with what arguments became, is charged to the connection and to the server (memory_budget.hpp):
// a connection that takes either beyond its limit ends with Errc::overloaded. Until it is authenticated a
// client has 64 KiB. One that does nothing with its connection is given up (peer_watch.hpp), and requests
// that cost much take turns with those of others (thread_turns.hpp).
// Threading: the io_context's thread.
#pragma once

#include <functional>
#include <unordered_map>

#include "hash/keyed.hpp"
#include "rpc/codec/agreed_schemas.hpp"
#include "rpc/interceptor.hpp"
#include "rpc/link/deadline_timer.hpp"
#include "rpc/link/frame_link.hpp"
#include "rpc/link/stream_channel.hpp"
#include "rpc/server/blocking_threads.hpp"
#include "rpc/server/call_host.hpp"
#include "rpc/server/held_requests.hpp"
#include "rpc/server/memory_budget.hpp"
#include "rpc/server/peer_watch.hpp"
#include "rpc/server/registry.hpp"
#include "rpc/server/thread_turns.hpp"
#include "transport/newcomers.hpp"

namespace weir::rpc {

struct ServerLimits {
  // Limits on what a client sends: the arguments of a call, an item. Larger data goes as a stream or an
  // attachment.
  FrameLimits frame{.body_bytes = 4u << 20, .attachment_bytes = 128u << 20};
  // Memory that the decoded arguments of one call, or one item, may take, or frame.body_bytes if that is
  // more: a million empty structs are a megabyte on the wire, and hundreds in the function.
  std::size_t max_decoded_bytes = 32u << 20;
  std::size_t decoded_bytes() const { return std::max<std::size_t>(max_decoded_bytes, frame.body_bytes); }
  std::size_t connection_bytes() const {
    return std::max(max_connection_bytes, 2 * (std::size_t{frame.body_bytes} + frame.attachment_bytes));
  }
  FrameLimits reply;                           // of a result
  std::uint32_t max_in_flight = 1024;          // coroutines of one connection
  std::size_t max_running_bytes = 128u << 20;  // of their arguments, and those of one more
  std::size_t max_waiting_bytes = 16u << 20;   // replies that one client did not read yet, and held requests
  std::uint32_t max_connections = 10'000;      // more are told Errc::overloaded, some of them at a time
  std::uint32_t max_streams = 256;             // of one connection, at once
  // Bytes that clients wrote and that wait to be read, per stream. No item sent or received may be larger.
  std::uint32_t stream_window_bytes = 1u << 20;
  // Limits on all that is kept for one client (or the size of two of its largest frames, if that is more),
  // and on all that is kept for all clients. A client that exceeds one is told `overloaded`, and closed.
  std::size_t max_connection_bytes = 256u << 20;
  std::size_t max_server_bytes = std::size_t{1} << 30;
  // Limit on a frame of a client that `authenticate` has not let in yet, and on what waits to be read by it.
  std::uint32_t max_unauthenticated_bytes = 64u << 10;
  PeerLimits peer;
  // A client that is refused is given this long, and may send this much, until it has read why.
  EndLimits end{std::chrono::milliseconds(2000)};
};

// What all connections of a server go by; each keeps it, since a cancelled function may end after its server.
// Only read once the server listens, by all of its threads.
struct ServerRules {
  explicit ServerRules(const ServerLimits& chosen = {}, BlockingOptions threads = {})
      : limits(chosen),
        memory(std::make_unique<MemoryBudget>(chosen.max_server_bytes)),
        blocking(std::make_unique<BlockingThreads>(threads)) {}
  const ServerLimits limits;
  const std::unique_ptr<MemoryBudget> memory;
  const std::unique_ptr<BlockingThreads> blocking;
  Authentication authentication;
  CompressionOptions compression;
  bool exceptions_to_callers = false;  // see ServerOptions
  Registry registry;
};

// Of all connections of a thread, since the server began.
struct ServerTotals {
  CompressionTotals compressed_sent;
  CompressionTotals compressed_received;
};

class RunningCall;
struct SentReply;

class ServerConnection final : public FrameLink, private ThreadTurns::Waiting, private CallHost {
 public:
  using Gone = std::function<void(ServerConnection&)>;

  ServerConnection(asio::io_context& io, TransportPtr transport, std::shared_ptr<const ServerRules> rules,
                   std::shared_ptr<const ServerChain> chain, std::shared_ptr<ServerTotals> totals,
                   std::shared_ptr<ThreadTurns> turns, Gone gone);
  ~ServerConnection() override;

  // Called instead of start(): the client learns why, and nothing that it sends is processed.
  void turn_away(const Error& why);
  // The same for a connection that has started.
  void dismiss(const Error& why);
  // Call before start(). The stay ends with the first call, of a client that is authenticated if it must be.
  void is_newcomer(transport::Newcomers::Stay stay) { stay_ = std::move(stay); }
  // Takes no new requests. The client is told, and closes when it has the replies that it waits for.
  void drain();
  // Stops now: running calls are cancelled.
  void stop();
  std::uint32_t in_flight() const { return static_cast<std::uint32_t>(running_.size()); }
  // Called every second or so: checks on the client and on the memory that it holds.
  void look(PeerWatch::TimePoint now);

 private:
  bool on_arrival(Frame& frame) override;
  bool put_aside(Frame& frame) override;
  void on_end(const Error& cause) override;
  void on_gone() override;
  void on_nonsense(const Error& why) override;
  void on_progress() override;
  bool may_lift_limits(const FrameHeader& header) override;
  bool answers_pings() const override { return waiting_bytes() < waiting_limit(); }
  bool take_turn() override;
  void leave(RunningCall& call) override;
  void arguments_read(RunningCall& call) override;
  void on_round_end() override { apply_limits(); }
  void on_packed(const CompressionCounts& counts) override { totals_->compressed_sent.add(counts); }
  void on_unpacked(const CompressionCounts& counts) override { totals_->compressed_received.add(counts); }

  static FrameLimits first_limits(const ServerRules& rules);
  bool handle(Frame& frame);
  void request(Frame& frame);
  void refuse_twin(std::uint64_t id);
  bool authenticate(std::string token);
  Result<void> admit(const Registered& method);
  bool stream_frame(const Frame& frame);
  bool refuse(const std::string& why);
  void open_stream(RunningCall& call);
  void run_now(const Registered& method, Frame& frame);
  void run_later(const Registered& method, Frame& frame);
  Result<void> begin_call(const Registered& method, Context& context, Frame& frame);
  Result<void> check_types(const Registered& method, Frame& frame);
  Result<void> arguments_from_json(const Registered& method, Context& context, Frame& frame);
  void end_call(Context& context, const Result<void>& outcome, const SentReply& reply);
  void finished(RunningCall& call, Result<void> outcome);
  // `threw`: the function did, and `why` has what() of it.
  void reply_failure(const Context& context, const Registered& method, bool threw, const Error& why);
  // `context`: of the call, once there is one.
  void reply_error(std::uint64_t id, const Error& why, Buffer attachment = {},
                   const Context* context = nullptr);
  void cancel_all();
  bool has_room() const;
  bool known() const { return !rules_->authentication.authenticate || identity_ != nullptr; }
  std::size_t waiting_limit() const;
  std::size_t held_bytes() const;
  void settle() { rules_->memory->settle(settled_, held_bytes()); }
  void check_memory();
  void give_up(Errc code, const char* why);
  // Of a request, when that is known.
  void spend(std::size_t cost);
  void lend(Context& context) const;
  bool waits_for_turn(const Frame& frame);
  void queue_for_turn();
  void replay(HeldRequests::Waiting held);
  void apply_limits();
  void update_reading();
  DeadlineTimer::Look end_late(Deadline now);

  const std::shared_ptr<const ServerRules> rules_;
  const std::shared_ptr<const ServerChain> chain_;
  const std::shared_ptr<ServerTotals> totals_;
  std::shared_ptr<const Identity> identity_;
  std::optional<Error> refusal_;  // of a token that came after identity_'s
  const ServerLimits& limits_;    // of rules_
  Gone gone_;
  std::unordered_map<std::uint64_t, RunningCall*, hash::Keyed> running_;
  std::uint32_t streams_ = 0;      // of running_
  std::size_t running_bytes_ = 0;  // of the arguments of those that are no streams
  std::size_t call_bytes_ = 0;     // of all of running_: arguments, as they came and as they became
  std::size_t settled_ = 0;        // of held_bytes(), with the server's budget
  HeldRequests held_;              // came when there was no room any more
  const std::shared_ptr<ThreadTurns> turns_;
  std::size_t recent_cost_ = 0;  // of the last requests, the last most
  bool in_turns_ = false;        // the first of held_ has its turn there
  AgreedSchemas schemas_;
  transport::Newcomers::Stay stay_;
  PeerWatch watch_;
  std::uint64_t requests_ = 0;
  bool reading_ = true;
  bool replaying_ = false;
  bool draining_ = false;
  DeadlineTimer deadlines_;
};

}  // namespace weir::rpc

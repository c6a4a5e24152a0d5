// One client of a server: takes its requests, runs the functions, sends the replies.
//
// A plain function runs while its request is handled and its result is encoded straight into the queue. A
// coroutine runs on its own, with a copy of its arguments, and may be cancelled: by the caller, by the
// deadline, by the end of the connection.
//
// Memory is bounded. Past the limits of what is in flight, of the arguments of that, or of what waits to be
// read by the client, requests wait for their turn as they came, compressed ones too, while all that is for
// calls that run is heard: what cancels them, their streams, pings. Once what waits to be read and what waits
// to run are most_waiting_bytes together, nothing is read until there is room, so that a client that asks for
// too much is held back by its own connection; what came in the same read (256 KiB of a socket) still waits.
// Threading: the io_context's thread.
#pragma once

#include <functional>
#include <unordered_map>

#include "hash/keyed.hpp"
#include "rpc/deadline_timer.hpp"
#include "rpc/frame_link.hpp"
#include "rpc/held_requests.hpp"
#include "rpc/interceptor.hpp"
#include "rpc/registry.hpp"

namespace weir::rpc {

struct ServerLimits {
  FrameLimits frame;
  std::uint32_t most_in_flight = 1024;                    // coroutines of one connection
  std::size_t most_running_bytes = std::size_t{1} << 30;  // of their arguments, and those of one more
  std::size_t most_waiting_bytes = 16u << 20;  // replies that one client did not read yet, and held requests
  std::uint32_t most_connections = 10'000;     // more are told Errc::overloaded, some of them at a time
  std::uint32_t most_streams = 256;            // of one connection, at once
  std::uint32_t stream_window_bytes = 256u << 10;  // of what clients write, waiting to be read; a stream
  // A client that is refused is given this long, and may send this much, until it has read why.
  EndLimits end{std::chrono::milliseconds(2000)};
};

// What all connections of a server go by; each keeps it, since a cancelled function may end after its server.
// Only read once the server listens, by all of its threads.
struct ServerRules {
  ServerLimits limits;
  Authentication authentication;
  CompressionOptions compression;
  Registry registry;
};

// Of all connections of a thread, since the server began.
struct ServerTotals {
  CompressionTotals compressed_sent;
  CompressionTotals compressed_received;
};

// Of a reply that was queued: bytes before they were compressed.
struct SentReply {
  std::size_t bytes = 0;
  CompressionCounts packed;
};

class RunningCall;
class Reply;

class ServerConnection final : public FrameLink {
 public:
  using Gone = std::function<void(ServerConnection&)>;

  ServerConnection(asio::io_context& io, TransportPtr transport, std::shared_ptr<const ServerRules> rules,
                   std::shared_ptr<const ServerChain> chain, std::shared_ptr<ServerTotals> totals, Gone gone);
  ~ServerConnection() override;

  // Instead of start(): the client learns why, and nothing that it sends is looked at.
  void turn_away(const Error& why);
  // No new requests. The client is told, and closes when it has the replies that it waits for.
  void drain();
  // Now: what runs is cancelled.
  void stop();
  std::uint32_t in_flight() const { return static_cast<std::uint32_t>(running_.size()); }

 private:
  friend class RunningCall;
  friend class Reply;
  bool on_arrival(Frame& frame) override;
  bool put_aside(Frame& frame) override;
  void on_end(const Error& cause) override;
  void on_gone() override;
  void on_nonsense(const Error& why) override;
  void on_progress() override;
  void on_round_end() override { mind_limits(); }
  void on_packed(const CompressionCounts& counts) override { totals_->compressed_sent.add(counts); }
  void on_unpacked(const CompressionCounts& counts) override { totals_->compressed_received.add(counts); }

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
  Result<void> begin_call(Context& context, Frame& frame);
  void end_call(Context& context, const Result<void>& outcome, const SentReply& reply);
  void finished(RunningCall& call, Result<void> outcome);
  void leave(RunningCall& call);
  Result<void> may_send(std::size_t body_bytes, const Context& context) const;
  void reply_error(std::uint64_t id, const Error& why, Buffer attachment = {});
  void cancel_all();
  bool has_room() const;
  void replay(HeldRequests::Waiting held);
  void mind_limits();
  void mind_reading();
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
  HeldRequests held_;              // came when there was no room any more
  bool reading_ = true;
  bool replaying_ = false;
  bool draining_ = false;
  DeadlineTimer deadlines_;
};

}  // namespace weir::rpc

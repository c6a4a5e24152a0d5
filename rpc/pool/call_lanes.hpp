// A call under way at several servers at once, a lane each; the first answer ends the others.
//
// Each lane has its own copy of the options and its own place for what comes back, so that a lane that loses
// writes nothing of the caller's. A lane that ended without an answer loses against one that still runs,
// where its error says that another server may answer (retry.hpp).
//
// Ownership: a lane is shared by its coroutine and by Lanes. Threading: the io_context's thread.
#pragma once

#include <asio/cancellation_signal.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "rpc/pool/known_servers.hpp"

namespace weir::rpc {

using EncodedReply = Result<std::vector<std::byte>>;

struct Lane {
  CallOptions options;
  KnownServers::Tried tried;
  Buffer attachment;  // of the reply, if the caller wants it, and there is more than one lane
  Metadata metadata;
  asio::cancellation_signal stop;
  bool ended = false;
  std::exception_ptr thrown;
  EncodedReply reply;
};
using LanePtr = std::shared_ptr<Lane>;

class Lanes {
 public:
  using Run = std::function<asio::awaitable<EncodedReply>(LanePtr)>;

  // `run` makes the call in one lane, with the lane's options.
  Lanes(asio::io_context& io, const CallOptions& options, Run run)
      : io_(io),
        options_(options),
        run_(std::move(run)),
        changed_(std::make_shared<asio::steady_timer>(io)) {}
  // Cancels lanes that still run.
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Begins one more lane, which avoids the servers of the others.
  void begin();
  std::size_t count() const { return lanes_.size(); }
  KnownServers::Tried tried() const;
  // None waits for a connection still: each has a server that another lane can avoid.
  bool all_sent() const;
  // The lane whose reply is the call's; null while it is open.
  LanePtr winner() const;
  bool is_hedge(const LanePtr& lane) const { return lane != lanes_.front(); }
  // One lane ended with an error that another server may not have.
  bool one_failed() const;
  // Until a lane ends, or until `when`; true: the time has passed.
  asio::awaitable<bool> wait(Clock::time_point when);
  // Puts what came back with the reply where the caller wants it.
  void hand_over(Lane& won) const;

 private:
  asio::io_context& io_;
  const CallOptions options_;
  const Run run_;
  const std::shared_ptr<asio::steady_timer> changed_;
  std::vector<LanePtr> lanes_;
};

}  // namespace weir::rpc

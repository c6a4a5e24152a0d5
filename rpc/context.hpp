// What a function may learn about the call that runs it, besides its arguments: take a rpc::Context& as any
// parameter.
//
// Lives as long as the call, and belongs to the connection's thread.
#pragma once

#include <asio/cancellation_signal.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/authentication.hpp"
#include "rpc/codec/msgpack.hpp"
#include "rpc/metadata.hpp"
#include "rpc/trace_context.hpp"
#include "rpc/transport/transport.hpp"
#include "rpc/wire/bytes.hpp"
#include "rpc/wire/compression.hpp"
#include "rpc/wire/deadline.hpp"
#include "rpc/wire/frame.hpp"

namespace weir::rpc {

class BlockingThreads;
class RunningCall;
class StreamChannel;

class Context {
 public:
  using Clock = std::chrono::steady_clock;

  Context(Transport& transport, std::string_view method, const FrameHeader& header, Buffer attached)
      : attachment(std::move(attached)), transport_(&transport), method_(method), header_(header) {
    if (header.timeout_us != 0 && header.timeout_us != UINT32_MAX)
      deadline_ = deadline_in(std::chrono::microseconds(header.timeout_us));
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // The attachment that came with the arguments. Move it away, or send it back uncopied:
  // context.reply_attachment = std::move(context.attachment).
  Buffer attachment;
  // The attachment that goes with the result. A lent one (Buffer::borrowed) is not copied if it lies in an
  // attachment that came, or in a buffer() of this connection: the caller gets the contents at the time its
  // end fetches them, which may be after the function has returned. So the function must keep that memory and
  // leave it unchanged.
  Buffer reply_attachment;
  // Memory for reply_attachment, to be filled: over RDMA it is sent in place, while any other memory is
  // copied first.
  [[nodiscard]] Buffer buffer(std::size_t bytes) const {
    return transport_ != nullptr ? transport_->buffer(bytes) : Buffer(bytes);
  }

  // The metadata that came with the call, and the metadata that goes back with its reply, be that a result or
  // a failure. Valid until the function returns, or until the interceptor that refuses the call returns
  // (metadata.hpp).
  Metadata metadata;
  Metadata reply_metadata;

  // How much memory the arguments may still take: their codec draws on it.
  DecodeRoom& decoding() { return decoding_; }
  void arguments_read();

  // The server's, for functions that block.
  BlockingThreads& blocking_threads() const { return *blocking_; }

  std::string_view method() const { return method_; }
  // When the caller stops waiting; the call is then cancelled.
  std::optional<Clock::time_point> deadline() const { return deadline_; }
  // The caller gave up, its connection ended, or the deadline passed. A coroutine is cancelled, too: what it
  // awaits ends with operation_aborted.
  bool cancelled() const { return cancelled_; }
  // Of a function with a Reader or a Writer, which are made from it.
  const std::shared_ptr<StreamChannel>& stream() const { return stream_; }
  // The trace that the caller said this call belongs to; pass it on in calls that the function makes. Where
  // an interceptor makes spans (tracing.hpp), it is the span of this call, and callers_trace() is the
  // caller's.
  const std::optional<TraceContext>& trace() const { return own_trace_ ? own_trace_ : trace_; }
  const std::optional<TraceContext>& callers_trace() const { return trace_; }
  void continue_trace(const TraceContext& own) { own_trace_ = own; }
  bool idempotent() const { return (header_.flags & FrameFlag::idempotent) != 0; }
  std::string peer() const { return transport_ != nullptr ? transport_->peer() : std::string(); }
  // The caller's identity as the server's authentication determined it; anonymous without authentication.
  const Identity& identity() const {
    static const Identity anonymous;
    return identity_ != nullptr ? *identity_ : anonymous;
  }
  // Whom the caller's certificate names, "CN=...": empty without TLS, or where no certificate was asked for.
  std::string peer_certificate() const {
    return transport_ != nullptr ? transport_->peer_certificate() : std::string();
  }

 private:
  friend class Reply;
  friend class RunningCall;
  friend class ServerConnection;
  Transport* transport_;
  std::string_view method_;
  FrameHeader header_;
  std::optional<Clock::time_point> deadline_;
  bool cancelled_ = false;
  std::shared_ptr<StreamChannel> stream_;
  std::shared_ptr<const Identity> identity_;
  std::optional<TraceContext> trace_, own_trace_;
  DecodeRoom decoding_;
  std::vector<std::byte> from_json_;     // the arguments, where they came as JSON
  RunningCall* running_ = nullptr;       // of a coroutine
  BlockingThreads* blocking_ = nullptr;  // there as well
  Clock::time_point arrived_{};          // only where there are interceptors
  std::size_t request_bytes_ = 0;
  CompressionCounts request_packed_;
};

}  // namespace weir::rpc

// A call that a server runs, and its reply.
//
// Ownership: a RunningCall is owned by its own coroutine frame and keeps its connection alive; a Reply is
// part of the call, or of the stack of a plain function. Threading: the connection's thread.
#pragma once

#include <asio/cancellation_signal.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "rpc/context.hpp"
#include "rpc/error.hpp"
#include "rpc/link/frame_link.hpp"
#include "rpc/link/stream_channel.hpp"
#include "rpc/metadata.hpp"
#include "rpc/server/call_host.hpp"
#include "rpc/server/registry.hpp"

namespace weir::rpc {

// Of a reply that was queued: bytes before they were compressed.
struct SentReply {
  std::size_t bytes = 0;
  CompressionCounts packed;
};

// The reply of a call, encoded in the place it is sent from, and sent while the result still exists.
class Reply final : public ReplyBody {
 public:
  // `most`: how large a result may be.
  Reply(FrameLink& link, const FrameLimits& most, const Registered& method, Context& context)
      : link_(link), most_(most), method_(method), context_(context) {}

  BodyPlace begin(BodySize expected) override {
    if (!context_.reply_metadata.empty()) expected.bytes += max_metadata_bytes;
    frame_ = link_.begin_frame(expected);
    try {
      metadata_ = put_metadata(link_, context_.reply_metadata, flags_);
    } catch (...) {
      drop();
      throw;
    }
    return link_.body();
  }
  void drop() override { link_.drop_frame(frame_); }
  Result<void> end() override {
    ended_ = true;
    const std::size_t bytes = link_.body_bytes(frame_);
    Result<void> may = metadata_ ? may_send(bytes) : metadata_;
    if (!may || !link_.is_open()) {
      drop();
      return may;
    }
    FrameHeader header;
    header.kind = FrameKind::reply;
    header.flags = flags_;
    header.id = context_.header_.id;
    header.codec = method_.codec;
    sent_.bytes = bytes + context_.reply_attachment.size();
    sent_.packed = link_.pack_body(frame_, header);
    link_.queue_frame(frame_, header, std::move(context_.reply_attachment));
    return {};
  }
  // Whether the reply has ended. What is thrown afterwards is not a failure of the function that the caller
  // could be told of.
  bool ended() const { return ended_; }
  const SentReply& sent() const { return sent_; }

  // Writes metadata at the beginning of a body, if the client knows it; that is one more flag. Fails if it is
  // too much.
  static Result<void> put_metadata(FrameLink& link, const Metadata& metadata, std::uint16_t& flags) {
    if (metadata.empty() || !link.peer_knows(Feature::metadata)) return {};
    Result<void> put = append(link.encoded(), metadata);
    if (put) flags |= FrameFlag::metadata;
    return put;
  }

 private:
  Result<void> may_send(std::size_t body_bytes) const {
    if (context_.stream_ && context_.stream_->spoiled()) return std::unexpected(*context_.stream_->spoiled());
    if (body_bytes > most_.body_bytes || context_.reply_attachment.size() > most_.attachment_bytes)
      return fail(Errc::too_large, "the result is beyond the server's limits");
    return {};
  }

  FrameLink& link_;
  const FrameLimits& most_;
  const Registered& method_;
  Context& context_;
  std::size_t frame_ = 0;
  std::uint16_t flags_ = 0;
  Result<void> metadata_;
  bool ended_ = false;
  SentReply sent_;
};

// A coroutine that serves a request. Owned by its own coroutine frame.
class RunningCall {
 public:
  // The reply goes over `link`, which `owner` keeps alive.
  RunningCall(std::shared_ptr<CallHost> owner, FrameLink& link, const FrameLimits& most_reply,
              const Registered& called, Frame& frame)
      : host(std::move(owner)),
        method(called),
        context(link.transport(), called.name, frame.header, std::move(frame.attachment)),
        reply(link, most_reply, called, context) {
    context.running_ = this;
  }
  ~RunningCall() {
    host->leave(*this);
    end_stream(Errc::closed);
  }
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

  std::uint64_t id() const { return context.header_.id; }
  void cancel(bool deadline_passed = false) {
    if (std::exchange(context.cancelled_, true)) return;
    late = deadline_passed;
    end_stream(late ? Errc::deadline_exceeded : Errc::cancelled);
    signal.emit(asio::cancellation_type::terminal);
  }

  std::shared_ptr<StreamChannel>& stream() { return context.stream_; }
  // What the function awaits of its stream ends.
  void end_stream(Errc code) {
    if (stream()) stream()->finish({code, "the function of this stream has ended"});
  }

  const std::shared_ptr<CallHost> host;
  const Registered& method;
  Context context;
  Bytes body;
  Reply reply;
  std::size_t argument_bytes = 0;  // of what is no stream
  std::size_t bytes = 0;           // with what they became
  asio::cancellation_signal signal;
  bool late = false;   // the deadline was the reason
  bool threw = false;  // what it returns is what() of an exception
};

}  // namespace weir::rpc

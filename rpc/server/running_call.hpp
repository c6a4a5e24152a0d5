// A call that a server runs, and its reply. For the server_*.cpp.
//
// Ownership: a RunningCall is owned by its own coroutine frame and holds its connection; a Reply is part of
// the call, or of the stack of a plain function. Threading: the connection's thread.
#pragma once

#include <asio/cancellation_signal.hpp>
#include <memory>
#include <utility>

#include "rpc/server/server_connection.hpp"

namespace weir::rpc {

// The reply of a call, encoded in the place it is sent from, and sent while the result still exists.
class Reply final : public ReplyBody {
 public:
  Reply(ServerConnection& connection, const Registered& method, Context& context)
      : connection_(connection), method_(method), context_(context) {}

  BodyPlace begin(BodySize expected) override {
    if (!context_.reply_metadata.empty()) expected.bytes += most_metadata_bytes;
    frame_ = connection_.begin_frame(expected);
    try {
      metadata_ = connection_.put_metadata(context_.reply_metadata, flags_);
    } catch (...) {
      drop();
      throw;
    }
    return connection_.body();
  }
  void drop() override { connection_.drop_frame(frame_); }
  Result<void> end() override {
    ended_ = true;
    const std::size_t bytes = connection_.body_bytes(frame_);
    Result<void> may = metadata_ ? connection_.may_send(bytes, context_) : metadata_;
    if (!may || !connection_.is_open()) {
      drop();
      return may;
    }
    FrameHeader header;
    header.kind = FrameKind::reply;
    header.flags = flags_;
    header.id = context_.header_.id;
    header.codec = method_.codec;
    sent_.bytes = bytes + context_.reply_attachment.size();
    sent_.packed = connection_.pack_body(frame_, header);
    connection_.queue_frame(frame_, header, std::move(context_.reply_attachment));
    return {};
  }
  // Whether the reply has ended. What is thrown afterwards is not a failure of the function that the caller
  // could be told of.
  bool ended() const { return ended_; }
  const SentReply& sent() const { return sent_; }

 private:
  ServerConnection& connection_;
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
  RunningCall(std::shared_ptr<ServerConnection> from, const Registered& called, Frame& frame)
      : connection(std::move(from)),
        method(called),
        context(connection->transport(), called.name, frame.header, std::move(frame.attachment)),
        reply(*connection, called, context) {
    context.identity_ = connection->identity_;
    context.decoding_.left = connection->limits_.decoded_bytes();
    context.running_ = this;
    context.blocking_ = connection->rules_->blocking.get();
  }
  ~RunningCall() {
    connection->leave(*this);
    end_stream(Errc::closed);
  }

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

  std::shared_ptr<ServerConnection> connection;
  const Registered& method;
  Context context;
  Bytes body;
  Reply reply;
  std::size_t argument_bytes = 0;  // of what is no stream
  std::size_t bytes = 0;           // with what they became
  asio::cancellation_signal signal;
  bool late = false;  // the deadline was the reason
};

}  // namespace weir::rpc

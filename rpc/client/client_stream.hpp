// A stream as the caller holds it.
//
//   auto ticks = client.stream<shop::ticks>(10u);
//   while (auto tick = co_await ticks.read()) use(*tick);
//   auto result = co_await ticks.finish();            // Result<R>: what the function returned, or why it
//   failed
//
// The request is sent at once; what is wrong with it comes out of the first thing that is awaited. read()
// gives the values until Errc::end_of_stream or the stream's error; write() sends one, and waits while the
// server has not read enough; close_write() says that there are no more; finish() does that, drops what was
// not read, and waits for the result. A stream has no deadline unless CallOptions::timeout sets one.
//
// Ownership: movable; destroying it before its end cancels the call. It may outlive the Client, whose end
// ends it. Threading: the thread of the client's io_context.
#pragma once

#include <string>
#include <vector>

#include "rpc/client/client_core.hpp"
#include "rpc/stream.hpp"

namespace weir::rpc {

// The call behind a stream: its channel, and its result as it came.
class StreamCall final : public PendingCall {
 public:
  // A stream that could not be opened.
  StreamCall(asio::io_context& io, Error why);
  // `id`: the request that commit() sent.
  StreamCall(std::shared_ptr<ClientCore> core, std::uint64_t id);
  ~StreamCall();
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  void complete(Result<std::span<const std::byte>> body) override;
  void abandon() override;
  StreamChannel* stream() override { return channel_.get(); }

  const std::shared_ptr<StreamChannel>& channel() const { return channel_; }
  void cancel();
  // The result's body, valid as long as this object. `self` is this object.
  static asio::awaitable<Result<std::span<const std::byte>>> finish(std::shared_ptr<StreamCall> self);

 private:
  std::shared_ptr<ClientCore> core_;  // until the end
  std::uint64_t id_ = 0;
  std::shared_ptr<StreamChannel> channel_;
  Result<Bytes> result_;
};

// In: what the function writes. Out: what it reads. R: what it returns. Each is void if there is none.
template <class In, class Out, class R, class C = MessagePack>
class ClientStream {
 public:
  explicit ClientStream(std::shared_ptr<StreamCall> call) : call_(std::move(call)) {}

  template <class T = In>
    requires(!std::is_void_v<T>)
  [[nodiscard]] asio::awaitable<Result<T>> read() {
    return read_item<T, C>(call_->channel(), Errc::bad_reply);
  }
  template <class T>
    requires(!std::is_void_v<Out> && PassableAs<const T&, Out>)
  [[nodiscard]] asio::awaitable<Result<void>> write(const T& value) {
    std::optional<WrongInteger> wrong;
    see_range<Out>(value, 0, wrong);
    if (wrong) return refused<void>(wrong_integer({}, *wrong));
    return write_item<C>(*call_->channel(), as_argument<Out>(value));
  }
  void close_write() { call_->channel()->end_writes(); }
  [[nodiscard]] asio::awaitable<Result<R>> finish() { return finish(call_); }
  // Ends the stream here and at the server, whose function is cancelled.
  void cancel() { call_->cancel(); }
  bool ended() const { return call_->channel()->finished(); }

 private:
  static asio::awaitable<Result<R>> finish(std::shared_ptr<StreamCall> call) {
    Result<std::span<const std::byte>> body = co_await StreamCall::finish(call);
    if (!body) co_return std::unexpected(std::move(body.error()));
    Result<R> value;
    if constexpr (!std::is_void_v<R>)
      if (const Result<void> read = C::read(*body, *value); !read)
        co_return fail(Errc::bad_reply,
                       "the result is not of the type that the function returns: " + read.error().what);
    co_return value;
  }

  std::shared_ptr<StreamCall> call_;
};

template <auto F>
struct StreamOfFunction {
  static_assert(Method<F>::streams, "the function has no Reader and no Writer: call it");
  using type = ClientStream<typename Method<F>::writes, typename Method<F>::reads, ResultOf<F>,
                            typename CodecOf<F>::type>;
};
template <auto F>
using StreamOf = typename StreamOfFunction<F>::type;

using EncodedStream =
    ClientStream<std::vector<std::byte>, std::span<const std::byte>, std::vector<std::byte>, EncodedBody>;

}  // namespace weir::rpc

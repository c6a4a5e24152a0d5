// A connection to a server, and calls through it.
//
//   rpc::Result<rpc::Client> client = co_await rpc::connect("tcp://127.0.0.1:9000");
//   rpc::Result<std::string> answer = co_await client->call<echo>("hello");
//
// Any number of calls may be under way at once; those made in one turn of the io_context share a write. The
// arguments are encoded before call() returns, so they need not outlive it; what CallOptions points at must
// stay until the call ends. GCC 12 miscompiles an aggregate temporary in an awaited expression: name it
// first, then await the call.
//
// Ownership: movable; closing or destroying it ends waiting calls with Errc::closed. Threading: the thread of
// the io_context that connect() ran on.
#pragma once

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/dispatch.hpp>
#include <asio/post.hpp>
#include <asio/recycling_allocator.hpp>
#include <asio/use_awaitable.hpp>
#include <stdexcept>

#include "rpc/asio_definitions.hpp"
#include "rpc/client/client_core.hpp"
#include "rpc/client/client_stream.hpp"
#include "rpc/codec/method_schema.hpp"
#include "rpc/interceptor.hpp"
#include "rpc/retry.hpp"
#include "rpc/transport_options.hpp"

namespace weir::rpc {

// The options of a call of F, which may be declared idempotent.
template <auto F>
decltype(auto) marked(const CallOptions& options) {
  if constexpr (idempotent<F>) {
    CallOptions own = options;
    own.idempotent = true;
    return own;
  } else {
    return (options);
  }
}

// A call that waits for its handler; in the handler's memory.
template <class R, class C, class Handler>
class WaitingCall final : public PendingCall {
 public:
  WaitingCall(Handler handler, asio::io_context& io) : handler_(std::move(handler)), io_(io) {}

  void complete(Result<std::span<const std::byte>> body) override {
    Result<R> result = decode(std::move(body));
    Handler handler = std::move(handler_);
    asio::io_context& io = io_;
    release(this, handler);
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) slot.clear();
    const auto executor = asio::get_associated_executor(handler, io.get_executor());
    asio::dispatch(executor, [handler = std::move(handler), result = std::move(result)]() mutable {
      std::move(handler)(std::move(result));
    });
  }

  void abandon() override {
    Handler handler = std::move(handler_);  // what it owns dies after the call
    release(this, handler);
  }

  static WaitingCall* make(Handler handler, asio::io_context& io) {
    Allocator allocator(asio::get_associated_allocator(handler, asio::recycling_allocator<void>()));
    return new (allocator.allocate(1)) WaitingCall(std::move(handler), io);
  }

 private:
  using Allocator = typename std::allocator_traits<typename asio::associated_allocator<
      Handler, asio::recycling_allocator<void>>::type>::template rebind_alloc<WaitingCall>;
  static void release(WaitingCall* call, Handler& handler) {
    Allocator allocator(asio::get_associated_allocator(handler, asio::recycling_allocator<void>()));
    call->~WaitingCall();
    allocator.deallocate(call, 1);
  }

  static Result<R> decode(Result<std::span<const std::byte>> body) {
    if (!body) return std::unexpected(std::move(body.error()));
    if constexpr (std::is_void_v<R>) {
      return {};
    } else {
      Result<R> value;
      if (Result<void> read = C::read(*body, *value); !read)
        return fail(Errc::bad_reply,
                    "the reply is not of the type that the function returns: " + read.error().what);
      return value;
    }
  }

  Handler handler_;
  asio::io_context& io_;
};

// A call that was sent, or that failed earlier, and waits to be awaited. Cancelled if it is never awaited.
template <class R, class C>
class StartedCall {
 public:
  StartedCall(std::shared_ptr<ClientCore> core, Result<std::uint64_t> id)
      : core_(std::move(core)), id_(std::move(id)) {}
  StartedCall(StartedCall&&) = default;
  StartedCall& operator=(StartedCall&&) = delete;
  ~StartedCall() {
    if (core_ && id_) core_->cancel(*id_);
  }

  template <class Handler>
  void operator()(Handler handler) {
    const auto core = std::move(core_);
    if (!core) {  // a client that was moved from
      const auto executor = asio::get_associated_executor(handler);
      asio::post(executor, [handler = std::move(handler)]() mutable {
        std::move(handler)(Result<R>(std::unexpected(Error{Errc::closed, "the client was moved away"})));
      });
      return;
    }
    auto slot = asio::get_associated_cancellation_slot(handler);
    auto* call = WaitingCall<R, C, Handler>::make(std::move(handler), core->io());
    if (!id_) return core->post_failure(*call, std::move(id_.error()));
    if (slot.is_connected())
      slot.assign([weak = std::weak_ptr(core), id = *id_](asio::cancellation_type) {
        if (const auto alive = weak.lock()) alive->cancel(id);
      });
    core->claim(*id_, *call);
  }

 private:
  std::shared_ptr<ClientCore> core_;
  Result<std::uint64_t> id_;
};

class Client {
 public:
  explicit Client(std::shared_ptr<ClientCore> core, std::string_view transport_name = {},
                  std::string why_fallback = {})
      : core_(std::move(core)), transport_name_(transport_name), why_fallback_(std::move(why_fallback)) {}
  Client(Client&&) = default;
  Client& operator=(Client&& other) noexcept {
    close();
    core_ = std::move(other.core_);
    transport_name_ = other.transport_name_;
    why_fallback_ = std::move(other.why_fallback_);
    return *this;
  }
  ~Client() { close(); }

  // Calls the function F of the server: co_await gives Result<R>, R being what F returns.
  template <auto F, class... A>
    requires((!std::is_same_v<CallOptions, A>) && ...)
  asio::awaitable<Result<ResultOf<F>>> call(const A&... arguments) {
    return call<F>(CallOptions(), arguments...);
  }
  template <auto F, class... A>
  asio::awaitable<Result<ResultOf<F>>> call(const CallOptions& options, const A&... arguments) {
    static_assert(!Method<F>::streams, "the function has a Reader or a Writer: open it with stream()");
    if (std::optional<Error> why = out_of_range<F>(arguments...))
      return refused<ResultOf<F>>(std::move(*why));
    return send<ResultOf<F>, typename CodecOf<F>::type>(method_number<F>, method_name<F>, marked<F>(options),
                                                        arguments_for<F>(arguments...), &schema_of<F>());
  }
  // Calls a function by its name; the types are not checked before the server does.
  template <class R, class... A>
    requires((!std::is_same_v<CallOptions, A>) && ...)
  asio::awaitable<Result<R>> call_by_name(std::string_view name, const A&... arguments) {
    return call_by_name<R>(name, CallOptions(), arguments...);
  }
  template <class R, class... A>
  asio::awaitable<Result<R>> call_by_name(std::string_view name, const CallOptions& options,
                                          const A&... arguments) {
    using Passed = std::tuple<decltype(as_argument<Unnamed<A>>(arguments))...>;
    return send<R, MessagePack>(method_id(name), name, options,
                                Passed(as_argument<Unnamed<A>>(arguments)...));
  }

  // Calls with a body that is already encoded, and returns the result's body as it came: for programs without
  // the types.
  asio::awaitable<Result<std::vector<std::byte>>> call_encoded(std::string_view name,
                                                               const CallOptions& options,
                                                               std::span<const std::byte> body) {
    return send<std::vector<std::byte>, EncodedBody>(method_id(name), name, options, body);
  }

  // Opens a stream: F has a Reader or a Writer. See client_stream.hpp.
  template <auto F, class... A>
    requires((!std::is_same_v<CallOptions, A>) && ...)
  [[nodiscard]] StreamOf<F> stream(const A&... arguments) {
    return stream<F>(CallOptions(), arguments...);
  }
  template <auto F, class... A>
  [[nodiscard]] StreamOf<F> stream(const CallOptions& options, const A&... arguments) {
    if (std::optional<Error> why = out_of_range<F>(arguments...))
      return StreamOf<F>(std::make_shared<StreamCall>(io_of_streams(), std::move(*why)));
    return StreamOf<F>(open_stream<typename CodecOf<F>::type>(
        method_number<F>, options, arguments_for<F>(arguments...), &schema_of<F>()));
  }
  // With bodies that are already encoded.
  [[nodiscard]] EncodedStream stream_encoded(std::string_view name, const CallOptions& options,
                                             std::span<const std::byte> body) {
    return EncodedStream(open_stream<EncodedBody>(method_id(name), options, body));
  }

  // `schema`: the caller's idea of the function's types, if it has one.
  asio::awaitable<Result<std::vector<std::byte>>> call_encoded(std::uint64_t method,
                                                               const CallOptions& options,
                                                               std::span<const std::byte> body,
                                                               const MethodSchema* schema = nullptr) {
    const std::string_view name = schema != nullptr ? schema->function : std::string_view();
    return send<std::vector<std::byte>, EncodedBody>(method, name, options, body, schema);
  }

  // Memory for an attachment: fill it, and give it to one call (CallOptions::attachment_given). Over rdma://
  // it is registered (from 32 KiB on and while half of the engine's pool is free) and the server reads it in
  // place, so nothing is copied. On other transports it is ordinary memory.
  [[nodiscard]] Buffer buffer(std::size_t bytes) {
    return core_ ? core_->transport().buffer(bytes) : Buffer(bytes);
  }

  // Checks that the server answers. No function runs for it.
  asio::awaitable<Result<void>> ping(std::chrono::microseconds timeout);
  // The same, but waits for as long as bytes still move between the two ends (peer_progress.hpp).
  asio::awaitable<Result<void>> ping_while_alive(std::chrono::microseconds timeout);

  bool is_open() const { return core_ && core_->is_open(); }
  // Why the connection is not open.
  Error end_cause() const {
    return core_ ? core_->end_cause() : Error{Errc::closed, "the client was moved away"};
  }
  // The server asked for no more calls; calls under way are still answered.
  bool draining() const { return core_ && core_->draining(); }
  // How many tokens the server was sent. If a call ends as unauthenticated and this number has grown since
  // the call was made, the call may succeed now.
  std::uint32_t tokens_sent() const { return core_ ? core_->tokens_sent() : 0; }
  // What the server said of itself when the connection began; version 0: a release without a hello.
  Hello server_hello() const { return core_ ? core_->peer_hello().value_or(Hello()) : Hello(); }
  std::uint32_t in_flight() const { return core_ ? core_->in_flight() : 0; }
  std::string peer() const { return core_ ? core_->transport().peer() : std::string(); }
  // "tcp", "unix", "tls", "rdma" or "rdma+tls". If the address allowed a fallback ("?fallback=tcp") and it
  // was used, why_fallback() says why.
  std::string_view transport_name() const { return transport_name_; }
  const std::string& why_fallback() const { return why_fallback_; }
  LinkStats stats() const { return core_ ? core_->stats() : LinkStats(); }
  void close();
  // Closes for another reason than that the client is no longer wanted: calls end with that reason.
  void close(Error why);

 private:
  // The type of an argument where no function defines it.
  template <class A>
  using Unnamed = std::conditional_t<std::is_convertible_v<const A&, std::string_view>, std::string_view, A>;

  template <class R, class C, class Arguments>
  asio::awaitable<Result<R>> send(std::uint64_t method, std::string_view name, const CallOptions& options,
                                  const Arguments& arguments, const MethodSchema* schema = nullptr) {
    if (!core_ || core_->chain().empty()) return send_now<R, C>(method, options, arguments, schema);
    OutgoingCall call{name, options, {}, {}};
    if (Result<void> passed = ask(core_->chain(), call); !passed)
      return refused<R>(std::move(passed.error()));
    if (call.trace) call.options.trace = &*call.trace;
    if (!call.metadata.empty()) {
      if (options.metadata != nullptr)
        call.metadata.insert(options.metadata->begin(), options.metadata->end());
      call.options.metadata = &call.metadata;
    }
    const auto came = std::make_shared<Metadata>();
    call.options.reply_metadata = came.get();
    Watched about{std::string(name), came, options.reply_metadata, traced(call.options.trace),
                  traced(options.trace)};
    return watched<R>(core_, std::move(about), send_now<R, C>(method, call.options, arguments, schema));
  }

  template <class R, class C, class Arguments>
  asio::awaitable<Result<R>> send_now(std::uint64_t method, const CallOptions& options,
                                      const Arguments& arguments, const MethodSchema* schema) {
    Result<std::uint64_t> id(0);  // without a core, StartedCall says so
    if (core_) {
      if (auto draft = core_->begin(method, body_size<C>(arguments))) {
        draft->codec = C::number;
        if (Result<void> put = core_->put_before_arguments(*draft, options, schema); !put) {
          id = std::unexpected(std::move(put.error()));
        } else {
          core_->append(*draft, [&](BodyPlace body) { C::write(body, arguments); });
          id = core_->commit(*draft, options);
        }
      } else {
        id = std::unexpected(std::move(draft.error()));
      }
    }
    return asio::async_initiate<const asio::use_awaitable_t<>, void(Result<R>)>(
        StartedCall<R, C>(core_, std::move(id)), asio::use_awaitable);
  }

  static asio::awaitable<Result<void>> ping(std::shared_ptr<ClientCore> core,
                                            std::chrono::microseconds timeout);
  static asio::awaitable<Result<void>> ping_while_alive(std::shared_ptr<ClientCore> core,
                                                        std::chrono::microseconds timeout);

  // What the chain is told of a call when it ends.
  struct Watched {
    std::string name;
    std::shared_ptr<Metadata> came;  // where the reply's metadata goes
    Metadata* wanted;                // where the caller wants it
    std::optional<TraceContext> trace;
    std::optional<TraceContext> parent_trace;
  };
  static std::optional<TraceContext> traced(const TraceContext* trace) {
    return trace != nullptr ? std::optional(*trace) : std::nullopt;
  }
  template <class R>
  static asio::awaitable<Result<R>> watched(std::shared_ptr<ClientCore> core, Watched about,
                                            asio::awaitable<Result<R>> call) {
    const auto started = Clock::now();
    Result<R> result = co_await std::move(call);
    CallEnd end;
    end.error = result ? nullptr : &result.error();
    end.latency = Clock::now() - started;
    end.metadata = about.came.get();
    if (about.trace) end.trace = &*about.trace;
    if (about.parent_trace) end.parent_trace = &*about.parent_trace;
    tell(core->chain(), about.name, end);
    if (about.wanted != nullptr) *about.wanted = std::move(*about.came);
    co_return result;
  }

  asio::io_context& io_of_streams() const {
    if (!core_) throw std::logic_error("rpc: stream() of a client that was moved away");
    return core_->io();
  }
  template <class C, class Arguments>
  std::shared_ptr<StreamCall> open_stream(std::uint64_t method, const CallOptions& options,
                                          const Arguments& arguments, const MethodSchema* schema = nullptr) {
    asio::io_context& io = io_of_streams();
    auto draft = core_->begin(method, body_size<C>(arguments));
    if (!draft) return std::make_shared<StreamCall>(io, std::move(draft.error()));
    draft->flags = FrameFlag::streaming;
    draft->codec = C::number;
    if (Result<void> put = core_->put_before_arguments(*draft, options, schema); !put)
      return std::make_shared<StreamCall>(io, std::move(put.error()));
    core_->append(*draft, [&](BodyPlace body) { C::write(body, arguments); });
    const auto id = core_->commit(*draft, options);
    if (!id) return std::make_shared<StreamCall>(io, id.error());
    return std::make_shared<StreamCall>(core_, *id);
  }

  std::shared_ptr<ClientCore> core_;
  std::string_view transport_name_;
  std::string why_fallback_;
};

// No aggregate, as CallOptions are none.
struct ConnectOptions {
  ConnectOptions() = default;

  ConnectionLimits limits;
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds hello_timeout{5000};  // then, until the server has said hello
  TransportOptions transport;
  TokenProvider token;             // none: nothing is sent
  ClientChain interceptors;        // of calls; streams pass them by
  CompressionOptions compression;  // of bodies, where the server uses it, too
};

// Connects to "tcp://HOST:PORT", "unix:///PATH", "tls://HOST:PORT", "rdma://HOST:PORT" or
// "rdma+tls://HOST:PORT". If "?fallback=tcp" follows rdma:// (tls: rdma+tls://) and RDMA does not work, that
// transport is tried at the same host and port; Client::transport_name() and why_fallback() say which one was
// used.
asio::awaitable<Result<Client>> connect(std::string address);
asio::awaitable<Result<Client>> connect(std::string address, ConnectOptions options);

}  // namespace weir::rpc

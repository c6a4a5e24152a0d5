// Connections to the servers of one service, and calls that go to one of them.
//
//   rpc::Pool pool(io, rpc::watched_file("/etc/shop.servers"), options);
//   auto sum = co_await pool.call<shop::add>(2, 3);
//
// Connections are made when they are needed, shared by any number of calls, pinged while they are open,
// closed when nobody used them for a while. A server that cannot be reached, or that did not answer a ping,
// is left alone for a time that grows, then connected to again, and called again once it has answered. No
// call waits for a connection while another server has one, but under consistent_hash. A call is made again,
// at another server if there is one, when it surely did not run, or may run twice (retry.hpp); its time-out
// is for all attempts together. A server that cannot be connected to, for want of a certificate say, costs no
// call as long as there is another. Nor does a token that expires: a call that was refused for it is made
// again, once, with the next token, on the same connection.
//
// Of calls that may run twice, those that are slow can be made at a second server beside the first
// (pool/hedging.hpp), and servers that fail far more calls than others can be left out for a while
// (pool/outliers.hpp).
//
// Streams and attachments that are megabytes need no pool: pick() gives the connection.
//
// Ownership: destroying the pool closes its connections; calls under way end with Errc::closed. Threading:
// the io_context's thread.
#pragma once

#include "rpc/client.hpp"
#include "rpc/pool/balancer.hpp"
#include "rpc/pool/hedging.hpp"
#include "rpc/pool/outliers.hpp"
#include "rpc/pool/pool_stats.hpp"
#include "rpc/pool/pooled_server.hpp"
#include "rpc/pool/resolver.hpp"
#include "rpc/retry.hpp"

namespace weir::rpc {

struct PoolOptions {
  ConnectOptions connect;
  Balancing balancing = Balancing::round_robin;
  RetryOptions retry;
  HedgingOptions hedging;
  std::optional<OutlierOptions> outliers;  // nullopt: no server is left out for what becomes of its calls
  std::uint32_t connections_per_server = 1;
  std::uint32_t calls_per_connection = 256;     // beyond this another one is opened, if there may be more
  std::chrono::milliseconds check_every{5000};  // pings; also when idle connections are looked for
  std::chrono::milliseconds check_timeout{
      2000};  // without an answer, or anything else, it is closed; of a hello, too
  std::chrono::milliseconds idle_timeout{60'000};
  std::chrono::milliseconds resolve_pause{1000};  // before a resolver that threw is asked again
  std::uint64_t seed = 0;  // of the waits between attempts; two callers should not have the same
};

class Pool {
 public:
  Pool(asio::io_context& io, std::unique_ptr<Resolver> resolver, PoolOptions options = {});
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  template <auto F, class... A>
    requires((!std::is_same_v<CallOptions, A>) && ...)
  [[nodiscard]] asio::awaitable<Result<ResultOf<F>>> call(const A&... arguments) {
    return call<F>(CallOptions(), arguments...);
  }
  // CallOptions::key says who goes where under consistent_hash.
  template <auto F, class... A>
  [[nodiscard]] asio::awaitable<Result<ResultOf<F>>> call(const CallOptions& options, const A&... arguments) {
    static_assert(!Method<F>::streams, "the function has a Reader or a Writer: pick() a connection for it");
    using C = typename CodecOf<F>::type;
    if (std::optional<Error> why = out_of_range<F>(arguments...))
      return refused<ResultOf<F>>(std::move(*why));
    Bytes body;
    C::write(body, arguments_for<F>(arguments...));
    CallOptions own = marked<F>(options);
    return decoded<ResultOf<F>, C>(call_encoded(method_number<F>, own, std::move(body), &schema_of<F>()));
  }
  // `schema`: as of Client::call_encoded().
  [[nodiscard]] asio::awaitable<Result<std::vector<std::byte>>> call_encoded(
      std::uint64_t method, const CallOptions& options, Bytes body, const MethodSchema* schema = nullptr);

  // A connection to the server that has its turn; it may be used while the pool lives.
  [[nodiscard]] asio::awaitable<Result<std::shared_ptr<Client>>> pick(std::uint64_t key = 0);

  std::vector<PooledServer> servers() const;
  // prometheus_text(name, stats(), servers()) makes them a page for a scraper.
  PoolStats stats() const;

 private:
  template <class R, class C>
  static asio::awaitable<Result<R>> decoded(asio::awaitable<Result<std::vector<std::byte>>> call) {
    Result<std::vector<std::byte>> body = co_await std::move(call);
    if (!body) co_return std::unexpected(std::move(body.error()));
    Result<R> value;
    if constexpr (!std::is_void_v<R>)
      if (const Result<void> read = C::read(*body, *value); !read)
        co_return fail(Errc::bad_reply,
                       "the reply is not of the type that the function returns: " + read.error().what);
    co_return value;
  }

  class State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::rpc

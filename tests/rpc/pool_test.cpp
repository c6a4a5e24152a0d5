// Pools over every transport: which server gets a call, what is retried, and what happens to connections.
#include "rpc/pool.hpp"

#include <gtest/gtest.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/ip/tcp.hpp>
#include <fstream>
#include <set>

#include "tests/rpc/rpc_fixture.hpp"

namespace ring {

int entered = 0;

// Returns which server it is.
struct Member {
  std::string name;
  int calls = 0;
  std::string who() {
    ++calls;
    return name;
  }
  std::string who_again() { return who(); }
};
int refused = 0;
weir::rpc::Result<std::int32_t> busy() {
  ++refused;
  return weir::rpc::fail(weir::rpc::Errc::overloaded, "too much to do");
}
asio::awaitable<std::string> hang() {
  ++entered;
  asio::steady_timer timer(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await timer.async_wait(asio::use_awaitable);
  co_return "";
}
asio::awaitable<std::string> hang_again() { return hang(); }

// The first call hangs until it is cancelled, further ones are answered with the number of the call.
int cancelled = 0;
asio::awaitable<std::int32_t> first_hangs(weir::rpc::Context& context) {
  const int number = ++entered;
  if (number == 1) {
    struct Guard {
      ~Guard() { ++cancelled; }
    } guard;
    asio::steady_timer timer(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await timer.async_wait(asio::use_awaitable);
  }
  context.reply_attachment = std::move(context.attachment);
  context.reply_metadata["number"] = std::to_string(number);
  co_return number;
}
asio::awaitable<std::int32_t> first_fails() {
  const int number = ++entered;
  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
  co_await timer.async_wait(asio::use_awaitable);
  if (number == 1) throw std::runtime_error("broken");
  co_return number;
}

}  // namespace ring

template <>
inline constexpr bool weir::rpc::idempotent<&ring::Member::who_again> = true;
template <>
inline constexpr bool weir::rpc::idempotent<ring::hang_again> = true;
template <>
inline constexpr bool weir::rpc::idempotent<ring::first_hangs> = true;
template <>
inline constexpr bool weir::rpc::idempotent<ring::first_fails> = true;

namespace weir::rpc {
namespace {

// A server that has too much to do for any call.
struct Refusing final : ServerInterceptor {
  Result<void> before(Context&) override { return fail(Errc::overloaded, "too much to do"); }
};

class Pools : public testing_support::RpcTest {
 protected:
  static constexpr int most = 3;
  ring::Member members[most] = {{"a"}, {"b"}, {"c"}};
  std::unique_ptr<Server> servers[most];
  std::vector<std::string> addresses;

  void start(int count) {
    ring::entered = ring::refused = ring::cancelled = 0;
    for (int i = 0; i < count; ++i) {
      servers[i] = make_server();
      servers[i]->add<&ring::Member::who, &ring::Member::who_again>(members[i]);
      servers[i]->add<ring::hang, ring::hang_again, ring::busy, ring::first_hangs, ring::first_fails>();
      addresses.push_back(over("unix") ? *servers[i]->listen("unix://" + folder.file("s" + std::to_string(i)))
                                       : listen(*servers[i]));
    }
  }
  PoolOptions options() const {
    PoolOptions chosen;
    chosen.connect = connect_options();
    chosen.retry.first_wait = std::chrono::milliseconds(1);
    return chosen;
  }
  // Runs `body` with a pool over the servers.
  void with_pool(PoolOptions chosen, std::function<asio::awaitable<void>(Pool&)> body) {
    with_pool(static_list(addresses), std::move(chosen), std::move(body));
  }
  void with_pool(std::unique_ptr<Resolver> resolver, PoolOptions chosen,
                 std::function<asio::awaitable<void>(Pool&)> body) {
    Pool pool(io, std::move(resolver), std::move(chosen));
    run([&]() -> asio::awaitable<void> { co_await body(pool); });
  }
  static asio::awaitable<void> turn() {
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  }
  // A call does not wait for a connection while there is another, so at first some servers get more than
  // their share.
  asio::awaitable<void> all_connected(Pool& pool) {
    const auto is_connected = [](const PooledServer& one) { return one.connections > 0; };
    do {
      EXPECT_TRUE(co_await pool.call<&ring::Member::who>());
    } while (!std::ranges::all_of(pool.servers(), is_connected));
    for (ring::Member& member : members) member.calls = 0;
  }
};

TEST_P(Pools, round_robin_reaches_every_server_over_one_connection_each) {
  start(3);
  with_pool(options(), [this](Pool& pool) -> asio::awaitable<void> {
    co_await all_connected(pool);
    std::multiset<std::string> who;
    for (int i = 0; i < 9; ++i) {
      const auto answer = co_await pool.call<&ring::Member::who>();
      EXPECT_TRUE(answer) << answer.error().what;
      who.insert(answer.value_or("?"));
    }
    for (const char* name : {"a", "b", "c"}) EXPECT_EQ(who.count(name), 3u) << name;
    for (const PooledServer& one : pool.servers()) EXPECT_EQ(one.connections, 1u) << one.address;
  });
  for (const auto& one : servers) EXPECT_EQ(one->stats().connections, 1u);
}

TEST_P(Pools, an_integer_that_does_not_fit_is_not_sent) {
  start(1);
  with_pool(options(), [](Pool& pool) -> asio::awaitable<void> {
    const auto refused = co_await pool.call<shop::add>(5'000'000'000, 1);
    EXPECT_EQ(refused.error().code, Errc::bad_arguments);
    EXPECT_NE(refused.error().what.find("argument 1 of shop.add"), std::string::npos) << refused.error().what;
    for (const PooledServer& one : pool.servers()) EXPECT_EQ(one.calls, 0u);
  });
}

TEST_P(Pools, equal_keys_reach_the_same_server) {
  start(3);
  PoolOptions chosen = options();
  chosen.balancing = Balancing::consistent_hash;
  with_pool(chosen, [](Pool& pool) -> asio::awaitable<void> {
    std::set<std::string> all;
    // So many that each server gets some, however unevenly the ports of this run share the ring.
    for (std::uint64_t key = 0; key < 200; ++key) {
      CallOptions call;
      call.key = key;
      const auto first = co_await pool.call<&ring::Member::who>(call);
      const auto again = co_await pool.call<&ring::Member::who>(call);
      EXPECT_EQ(first.value_or("?"), again.value_or("!"));
      all.insert(first.value_or("?"));
    }
    EXPECT_EQ(all.size(), 3u);
  });
}

TEST_P(Pools, least_loaded_avoids_a_server_that_hangs) {
  start(2);
  PoolOptions chosen = options();
  chosen.balancing = Balancing::least_loaded;
  with_pool(chosen, [this](Pool& pool) -> asio::awaitable<void> {
    co_await all_connected(pool);
    asio::co_spawn(io, pool.call<ring::hang>(), [](const std::exception_ptr&, const Result<std::string>&) {});
    while (ring::entered == 0) co_await turn();
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(co_await pool.call<&ring::Member::who>());
    EXPECT_EQ(members[0].calls + members[1].calls, 10);
    EXPECT_TRUE(members[0].calls == 10 || members[1].calls == 10);
  });
}

TEST_P(Pools, a_server_that_is_gone_is_left_out_and_no_call_fails) {
  start(3);
  with_pool(options(), [this](Pool& pool) -> asio::awaitable<void> {
    co_await all_connected(pool);
    servers[1]->stop();
    for (int i = 0; i < 12; ++i) {
      // The first may be in flight when the connection ends, so it must be one that may run twice.
      const auto answer = co_await pool.call<&ring::Member::who_again>();
      EXPECT_TRUE(answer) << answer.error().what;
    }
    EXPECT_EQ(members[1].calls, 0);
  });
}

TEST_P(Pools, a_server_that_cannot_be_connected_to_costs_no_call_whatever_the_reason) {
  start(1);
  const std::string good = addresses[0];
  std::vector<std::string> bad = {"no address at all"};
  if (over("tcp")) bad.push_back("tls" + good.substr(good.find(':')));  // it does not speak TLS
  // It accepts other certificates than ours, which TLS 1.3 reports only when the call is already in flight.
  ServerOptions choosy;
  choosy.transport = transport("server");
  if (over("tls")) choosy.transport.tls = testing_support::tls_of("server", "other-ca");
  Server of_others(io, choosy);
  if (over("tls")) bad.push_back(listen(of_others));
  for (const std::string& one : bad) {
    SCOPED_TRACE(one);
    with_pool(static_list({one, good}), options(), [](Pool& pool) -> asio::awaitable<void> {
      for (int i = 0; i < 6; ++i) {
        const auto answer = co_await pool.call<&ring::Member::who>();
        EXPECT_TRUE(answer) << answer.error().what;
      }
    });
    with_pool(static_list({one}), options(), [](Pool& pool) -> asio::awaitable<void> {
      const auto answer = co_await pool.call<&ring::Member::who>();
      EXPECT_FALSE(answer);
      EXPECT_TRUE(did_not_run(answer.error().code)) << answer.error().what;
    });
  }
}

TEST_P(Pools, draining_servers_calls_go_to_others) {
  start(2);
  with_pool(options(), [this](Pool& pool) -> asio::awaitable<void> {
    co_await all_connected(pool);
    servers[0]->drain();
    for (int i = 0; i < 6; ++i) EXPECT_TRUE(co_await pool.call<&ring::Member::who>());
    EXPECT_EQ(members[0].calls, 0);
  });
}

// Whether the function ran before the connection ended is unknown.
TEST_P(Pools, calls_that_may_have_run_are_made_again_only_if_they_may_run_twice) {
  for (const bool twice : {false, true}) {
    addresses.clear();
    start(2);
    with_pool(options(), [&](Pool& pool) -> asio::awaitable<void> {
      bool ended = false;
      Result<std::string> result;
      const auto call = [&]() -> asio::awaitable<void> {
        if (twice)
          result = co_await pool.call<ring::hang_again>();
        else
          result = co_await pool.call<ring::hang>();
        ended = true;
      };
      asio::co_spawn(io, call(), [](const std::exception_ptr&) {});
      while (ring::entered == 0) co_await turn();
      for (const PooledServer& one : pool.servers())
        if (one.in_flight == 1) servers[one.address == addresses[0] ? 0 : 1]->stop();
      if (twice) {
        while (ring::entered < 2) co_await turn();
        EXPECT_FALSE(ended);
      } else {
        while (!ended) co_await turn();
        EXPECT_EQ(result.error().code, Errc::connection_lost);
        EXPECT_EQ(ring::entered, 1);
      }
      for (int i = 0; i < 2; ++i) servers[i]->stop();
      while (!ended) co_await turn();
    });
  }
}

TEST_P(Pools, servers_with_too_much_to_do_are_not_asked_several_times_as_much) {
  start(3);
  PoolOptions chosen = options();
  chosen.retry.first_wait = std::chrono::microseconds(1);
  chosen.retry.budget_share = 0.1;
  chosen.retry.budget_reserve = 5;
  with_pool(chosen, [](Pool& pool) -> asio::awaitable<void> {
    constexpr int calls = 100;
    Error last;
    for (int i = 0; i < calls; ++i) {
      const auto answer = co_await pool.call<ring::busy>();
      EXPECT_EQ(answer.error().code, Errc::overloaded);
      last = answer.error();
    }
    EXPECT_GT(ring::refused, calls);
    EXPECT_LE(ring::refused, calls + 5 + calls / 10);
    EXPECT_NE(last.what.find("too many calls were made again lately"), std::string::npos) << last.what;
    const auto well = co_await pool.call<&ring::Member::who>();
    EXPECT_TRUE(well);
  });
}

TEST_P(Pools, nobody_there_is_an_error_that_says_how_often_it_was_tried) {
  start(2);
  for (int i = 0; i < 2; ++i) servers[i].reset();
  with_pool(options(), [](Pool& pool) -> asio::awaitable<void> {
    const auto answer = co_await pool.call<&ring::Member::who>();
    EXPECT_EQ(answer.error().code, Errc::unreachable);
    EXPECT_NE(answer.error().what.find("(attempt 3)"), std::string::npos) << answer.error().what;
    for (const PooledServer& one : pool.servers()) EXPECT_GT(one.failures, 0u);
  });
}

TEST_P(Pools, idle_connections_are_closed) {
  start(1);
  PoolOptions chosen = options();
  chosen.check_every = std::chrono::milliseconds(1);
  chosen.idle_timeout = std::chrono::milliseconds(2);
  with_pool(chosen, [this](Pool& pool) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await pool.call<&ring::Member::who>());
    while (servers[0]->open() > 0) co_await turn();
    while (pool.servers().at(0).connections > 0) co_await turn();
    EXPECT_TRUE(co_await pool.call<&ring::Member::who>());
    EXPECT_EQ(servers[0]->stats().connections, 2u);
  });
}

TEST_P(Pools, another_connection_is_opened_when_the_first_is_busy) {
  start(1);
  PoolOptions chosen = options();
  chosen.connections_per_server = 2;
  chosen.calls_per_connection = 1;
  with_pool(chosen, [this](Pool& pool) -> asio::awaitable<void> {
    asio::co_spawn(io, pool.call<ring::hang>(), [](const std::exception_ptr&, const Result<std::string>&) {});
    while (ring::entered == 0) co_await turn();
    EXPECT_TRUE(co_await pool.call<&ring::Member::who>());
    while (pool.servers().at(0).connections < 2) co_await turn();
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(co_await pool.call<&ring::Member::who>());
    EXPECT_EQ(servers[0]->stats().connections, 2u);
  });
}

TEST_P(Pools, a_ping_is_answered_and_its_connection_stays) {
  start(1);
  with_client(addresses[0], [](Client& client) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client.ping(std::chrono::seconds(10)));
    EXPECT_TRUE(co_await client.call<&ring::Member::who>());
    EXPECT_EQ(client.in_flight(), 0u);
  });
}

TEST_P(Pools, a_watched_file_says_where_the_servers_are) {
  start(2);
  const std::string path = folder.file("servers");
  const auto write = [&](const std::string& text) {
    std::ofstream(folder.file("next")) << text;
    std::filesystem::rename(folder.file("next"), path);
  };
  write("# the first\n  " + addresses[0] + "  # here\n\n");
  with_pool(watched_file(path), options(), [&](Pool& pool) -> asio::awaitable<void> {
    for (int i = 0; i < 3; ++i) EXPECT_EQ((co_await pool.call<&ring::Member::who>()).value_or("?"), "a");
    write(addresses[1] + "\n");
    while (pool.servers().empty() || pool.servers().at(0).address != addresses[1]) co_await turn();
    for (int i = 0; i < 3; ++i) EXPECT_EQ((co_await pool.call<&ring::Member::who>()).value_or("?"), "b");
    // If the source cannot be read, the known servers stay.
    write("nonsense\n");
    for (int i = 0; i < 3; ++i) EXPECT_EQ((co_await pool.call<&ring::Member::who>()).value_or("?"), "b");
  });
}

TEST_P(Pools, a_pool_that_goes_ends_its_calls) {
  start(1);
  bool ended = false;
  Errc code{};
  {
    Pool pool(io, static_list(addresses), options());
    asio::co_spawn(io, pool.call<ring::hang_again>(),
                   [&](const std::exception_ptr&, const Result<std::string>& result) {
                     code = result ? Errc{} : result.error().code;
                     ended = true;
                   });
    run_until([] { return ring::entered == 1; });
  }
  run_until([&] { return ended; });
  EXPECT_EQ(code, Errc::closed);
}

TEST_P(Pools, a_slow_call_is_hedged_and_the_loser_is_cancelled) {
  start(2);
  PoolOptions chosen = options();
  chosen.hedging.after = std::chrono::milliseconds(1);
  with_pool(chosen, [](Pool& pool) -> asio::awaitable<void> {
    Buffer given(3), back;
    std::ranges::fill(given.span(), std::byte{7});
    Metadata metadata;
    CallOptions call;
    call.attachment_given = &given;
    call.reply_attachment = &back;
    call.reply_metadata = &metadata;
    const auto answer = co_await pool.call<ring::first_hangs>(call);
    EXPECT_EQ(answer.value_or(0), 2) << answer.error().what;
    EXPECT_EQ(back.span().size(), 3u);
    EXPECT_EQ(metadata["number"], "2");
    while (ring::cancelled == 0) co_await turn();
    const PoolStats stats = pool.stats();
    EXPECT_EQ(stats.calls, 1u);
    EXPECT_EQ(stats.hedges, 1u);
    EXPECT_EQ(stats.hedges_won, 1u);
    std::set<std::uint64_t> each;
    for (const PooledServer& one : pool.servers()) each.insert(one.calls);
    EXPECT_EQ(each, std::set<std::uint64_t>{1});
  });
}

TEST_P(Pools, what_may_not_be_hedged_runs_once) {
  start(2);
  PoolOptions chosen = options();
  chosen.hedging.after = std::chrono::milliseconds(1);
  with_pool(chosen, [this](Pool& pool) -> asio::awaitable<void> {
    co_await all_connected(pool);
    CallOptions call;
    call.timeout = std::chrono::milliseconds(50);
    const auto once = co_await pool.call<ring::hang>(call);
    EXPECT_EQ(once.error().code, Errc::deadline_exceeded);
    EXPECT_EQ(ring::entered, 1);
    std::array<std::byte, 8> room{};
    call.reply_into = room;
    const auto lent = co_await pool.call<ring::hang_again>(call);
    EXPECT_EQ(lent.error().code, Errc::deadline_exceeded);
    EXPECT_EQ(ring::entered, 2);
    CallOptions never;
    never.timeout = std::chrono::milliseconds(50);
    never.hedge_after = std::chrono::microseconds(-1);
    const auto not_this_call = co_await pool.call<ring::hang_again>(never);
    EXPECT_EQ(not_this_call.error().code, Errc::deadline_exceeded);
    EXPECT_EQ(ring::entered, 3);
    EXPECT_EQ(pool.stats().hedges, 0u);
  });
}

TEST_P(Pools, hedges_end_with_their_tokens) {
  start(2);
  PoolOptions chosen = options();
  chosen.hedging.after = std::chrono::milliseconds(1);
  chosen.hedging.max_tokens = 2;
  with_pool(chosen, [this](Pool& pool) -> asio::awaitable<void> {
    co_await all_connected(pool);
    CallOptions call;
    call.timeout = std::chrono::milliseconds(50);
    for (int i = 0; i < 2; ++i) {
      const auto late = co_await pool.call<ring::hang_again>(call);
      EXPECT_EQ(late.error().code, Errc::deadline_exceeded);
    }
    EXPECT_EQ(ring::entered, 3);
    EXPECT_EQ(pool.stats().hedges, 1u);
    EXPECT_EQ(pool.stats().hedges_refused, 1u);
  });
}

TEST_P(Pools, a_failure_that_is_an_answer_ends_a_hedged_call) {
  start(2);
  PoolOptions chosen = options();
  chosen.hedging.after = std::chrono::hours(1);
  with_pool(chosen, [](Pool& pool) -> asio::awaitable<void> {
    const auto answer = co_await pool.call<ring::first_fails>();
    EXPECT_EQ(answer.error().code, Errc::failed);
    EXPECT_EQ(ring::entered, 1);
    EXPECT_EQ((co_await pool.call<ring::first_fails>()).value_or(0), 2);
  });
}

TEST_P(Pools, a_hedged_call_that_is_cancelled_ends_at_both_servers) {
  start(2);
  PoolOptions chosen = options();
  chosen.hedging.after = std::chrono::milliseconds(1);
  Pool pool(io, static_list(addresses), chosen);
  asio::cancellation_signal signal;
  bool ended = false;
  Errc code{};
  asio::co_spawn(io, pool.call<ring::hang_again>(),
                 asio::bind_cancellation_slot(
                     signal.slot(), [&](const std::exception_ptr&, const Result<std::string>& result) {
                       code = result ? Errc{} : result.error().code;
                       ended = true;
                     }));
  run_until([] { return ring::entered == 2; });
  signal.emit(asio::cancellation_type::terminal);
  run_until([&] { return ended; });
  EXPECT_EQ(code, Errc::cancelled);
  const auto idle = [&] {
    return std::ranges::all_of(pool.servers(), [](const PooledServer& one) { return one.in_flight == 0; });
  };
  run_until(idle);
}

TEST_P(Pools, a_server_that_fails_its_calls_is_ejected) {
  start(2);
  PoolOptions chosen = options();
  chosen.retry.attempts = 1;
  chosen.outliers = OutlierOptions();
  chosen.outliers->min_calls = 1;
  chosen.outliers->interval = std::chrono::milliseconds(1);
  chosen.outliers->base_ejection = std::chrono::hours(1);
  chosen.outliers->max_ejection = std::chrono::hours(1);
  ring::Member overloaded[] = {{"bad"}};
  Server bad(io, [&] {
    ServerOptions of_bad;
    of_bad.transport = transport("server");
    of_bad.interceptors = {std::make_shared<Refusing>()};
    return of_bad;
  }());
  bad.add<&ring::Member::who>(overloaded[0]);
  const std::string at = over("unix") ? *bad.listen("unix://" + folder.file("bad")) : listen(bad);
  addresses.push_back(at);
  with_pool(chosen, [&](Pool& pool) -> asio::awaitable<void> {
    while (pool.stats().ejections == 0) co_await pool.call<&ring::Member::who>();
    const std::uint64_t calls = pool.servers().back().calls;
    for (int i = 0; i < 12; ++i) {
      const auto answer = co_await pool.call<&ring::Member::who>();
      EXPECT_TRUE(answer) << answer.error().what;
    }
    EXPECT_EQ(pool.servers().back().calls, calls);
    EXPECT_TRUE(pool.servers().back().ejected);
    EXPECT_GT(pool.servers().back().failed_calls, 0u);
    const std::string page = prometheus_text("shop", pool.stats(), pool.servers());
    EXPECT_NE(page.find("weir_rpc_pool_ejections_total{pool=\"shop\"} 1\n"), std::string::npos) << page;
    EXPECT_NE(page.find("weir_rpc_pool_server_ejected{pool=\"shop\",server=\"" + at + "\"} 1\n"),
              std::string::npos)
        << page;
    EXPECT_NE(page.find("weir_rpc_pool_latency_seconds_count{pool=\"shop\"} " +
                        std::to_string(pool.stats().calls) + "\n"),
              std::string::npos)
        << page;
  });
}

INSTANTIATE_TEST_SUITE_P(Over, Pools, testing_support::transports, testing_support::transport_name);

class Silence : public Pools {};

// The server accepts and sends nothing, so the handshake never ends.
TEST_P(Silence, a_call_that_is_cancelled_while_it_connects_leaves_the_others_alone) {
  asio::ip::tcp::acceptor silent(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  addresses = {"tls://127.0.0.1:" + std::to_string(silent.local_endpoint().port())};
  const auto pool = std::make_unique<Pool>(io, static_list(addresses), options());
  asio::cancellation_signal signal;
  std::vector<Errc> ends;
  const auto ended = [&](const std::exception_ptr&, const Result<std::string>& result) {
    ends.push_back(result ? Errc{} : result.error().code);
  };
  asio::co_spawn(io, pool->call<ring::hang>(), asio::bind_cancellation_slot(signal.slot(), ended));
  asio::co_spawn(io, pool->call<ring::hang>(), ended);
  bool accepted = false;
  asio::ip::tcp::socket peer(io);
  silent.async_accept(peer, [&](const std::error_code&) { accepted = true; });
  run_until([&] { return accepted; });
  signal.emit(asio::cancellation_type::terminal);
  run_until([&] { return !ends.empty(); });
  EXPECT_EQ(ends, std::vector{Errc::cancelled});
  peer.close();
  run_until([&] { return ends.size() == 2; });
  EXPECT_EQ(ends.back(), Errc::tls);
}

INSTANTIATE_TEST_SUITE_P(Over, Silence, testing::Values("tls"), testing_support::transport_name);

class Fallback : public Pools {};

TEST_P(Fallback, is_taken_only_where_the_address_says_so_and_tells_why) {
  start(0);
  server = std::make_unique<Server>(io);
  server->add<shop::add>();
  const std::string tcp = *server->listen("tcp://127.0.0.1:0");
  const std::string rdma = "rdma" + tcp.substr(3);
  EXPECT_EQ(server->listen(rdma + "?fallback=tcp").error().code, Errc::bad_address);
  run([&]() -> asio::awaitable<void> {
    ConnectOptions chosen = connect_options();
    const auto refused = co_await connect(rdma, chosen);
    EXPECT_FALSE(refused);
    auto client = co_await connect(rdma + "?fallback=tcp", chosen);
    EXPECT_TRUE(client) << client.error().what;
    EXPECT_EQ(client->transport_name(), "tcp");
    EXPECT_NE(client->why_fallback().find("rdma://"), std::string::npos) << client->why_fallback();
    EXPECT_EQ((co_await client->call<shop::add>(1, 2)).value_or(0), 3);
    auto plain = co_await connect(tcp, chosen);
    EXPECT_EQ(plain->transport_name(), "tcp");
    EXPECT_EQ(plain->why_fallback(), "");
  });
}

INSTANTIATE_TEST_SUITE_P(Over, Fallback, testing::Values("rdma"), testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc

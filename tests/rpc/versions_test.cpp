// Two ends of different releases: how they introduce themselves, which types fit, and which names are
// reserved.
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/write.hpp>
#include <chrono>

#include "rpc/pool.hpp"
#include "rpc/server/reflection.hpp"
#include "rpc_fixture.hpp"

// A service before and after a change: the same names, other declarations.
namespace was {
struct Box {
  double width = 0, height = 0;
};
struct Item {
  std::string name;
};
std::int64_t wait(std::chrono::seconds);
double area(Box);
std::string brew(std::string);
std::uint32_t take(Item);
asio::awaitable<std::int64_t> total(weir::rpc::Reader<std::int32_t>);
std::int32_t twice(std::int32_t);
}  // namespace was

namespace now {
struct Box {
  double height = 0, width = 0;
};
struct Item {
  std::string name;
  std::uint32_t count = 12;
};
std::int64_t wait(std::chrono::milliseconds time) { return time.count(); }
double area(Box box) { return box.width * 10 + box.height; }
std::string brew(std::string drink, std::int64_t cups, std::string with) {
  return std::to_string(cups) + " " + drink + " with " + with;
}
std::uint32_t take(Item item) { return item.count; }
asio::awaitable<std::int64_t> total(weir::rpc::Reader<std::string>) { co_return 0; }
std::int64_t doubled(std::int64_t value) { return 2 * value; }
}  // namespace now

namespace weir::rpc {

template <>
inline constexpr std::string_view stable_name<was::wait> = "shop.wait";
template <>
inline constexpr std::string_view stable_name<now::wait> = "shop.wait";
template <>
inline constexpr std::string_view stable_name<was::area> = "shop.area";
template <>
inline constexpr std::string_view stable_name<now::area> = "shop.area";
template <>
inline constexpr std::string_view stable_name<was::brew> = "shop.brew";
template <>
inline constexpr std::string_view stable_name<now::brew> = "shop.brew";
template <>
inline constexpr auto defaults<now::brew> = std::tuple(2, std::string_view("milk"));
template <>
inline constexpr std::string_view stable_name<was::take> = "shop.take";
template <>
inline constexpr std::string_view stable_name<now::take> = "shop.take";
template <>
inline constexpr std::string_view stable_name<was::total> = "shop.total";
template <>
inline constexpr std::string_view stable_name<now::total> = "shop.total";

namespace {

using testing_support::RpcTest;
using namespace std::chrono_literals;

class RpcVersions : public RpcTest {};
INSTANTIATE_TEST_SUITE_P(Transport, RpcVersions, testing::Values("tcp", "rdma"),
                         testing_support::transport_name);

template <class T>
void expect_mismatch(const Result<T>& result, const std::string& what) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::schema_mismatch) << result.error().what;
  EXPECT_NE(result.error().what.find(what), std::string::npos) << result.error().what;
  EXPECT_TRUE(did_not_run(result.error().code));
}

TEST_P(RpcVersions, each_end_hears_what_the_other_is) {
  serve<shop::echo>();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ(client.server_hello(), own_hello);
    co_return;
  });
}

TEST_P(RpcVersions, types_that_do_not_go_together_are_an_error_that_says_what_differs) {
  serve<now::wait, now::area, now::total>();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    for (int times = 0; times < 2; ++times) {
      const auto waited = co_await client.call<was::wait>(5s);
      expect_mismatch(waited, "shop.wait: argument 1: i64[s] at the caller, i64[ms] at the server");
    }
    const was::Box box{2, 3};
    const auto area = co_await client.call<was::area>(box);
    expect_mismatch(area, "shop.area: argument 1, field 1 of Box: width at the caller, height at the server");
    auto total = client.stream<was::total>();
    const auto summed = co_await total.finish();
    expect_mismatch(summed, "shop.total: what it reads: i32 at the caller, str at the server");
    const auto well = co_await client.call<now::wait>(5ms);
    EXPECT_EQ(well.value_or(0), 5);
  });
}

TEST_P(RpcVersions, types_that_grew_go_together) {
  serve<now::take, now::brew>();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const was::Item nut{"nut"};
    for (int times = 0; times < 3; ++times) {
      const auto count = co_await client.call<was::take>(nut);
      EXPECT_EQ(count.value_or(0), 12u) << count.error().what;
    }
  });
}

TEST_P(RpcVersions, parameters_with_defaults_may_be_left_out) {
  serve<now::brew>();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const auto old = co_await client.call<was::brew>("tea");
    EXPECT_EQ(old.value_or(""), "2 tea with milk");
    const auto none = co_await client.call<now::brew>("tea");
    EXPECT_EQ(none.value_or(""), "2 tea with milk");
    const auto one = co_await client.call<now::brew>("tea", 3);
    EXPECT_EQ(one.value_or(""), "3 tea with milk");
    const auto both = co_await client.call<now::brew>("tea", 3, "rum");
    EXPECT_EQ(both.value_or(""), "3 tea with rum");
    const auto listed = co_await client.call_by_name<std::vector<MethodInfo>>(methods_method);
    EXPECT_EQ(listed.value().at(0).schema, "(str, optional i64, optional str) -> str");
    const auto fewer = co_await client.call_by_name<std::string>("shop.brew");
    EXPECT_EQ(fewer.error().code, Errc::bad_arguments);
    const auto more = co_await client.call_by_name<std::string>("shop.brew", "a", 1, "b", 2);
    EXPECT_EQ(more.error().code, Errc::bad_arguments);
  });
}

TEST_P(RpcVersions, a_function_that_was_renamed_keeps_the_name_that_callers_use) {
  server = make_server();
  server->add<now::doubled>();
  server->alias("was.twice", "now.doubled");
  EXPECT_THROW(server->alias("was.twice", "now.doubled"), std::logic_error);
  EXPECT_THROW(server->alias("was.thrice", "now.trebled"), std::logic_error);
  address = listen(*server);
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const auto doubled = co_await client.call<now::doubled>(2);
    EXPECT_EQ(doubled.value_or(0), 4);
    const auto by_name = co_await client.call_by_name<std::int64_t>("was.twice", 3);
    EXPECT_EQ(by_name.value_or(0), 6);
    const auto wider = co_await client.call<was::twice>(3);  // its result became wider than the caller's
    expect_mismatch(wider, "was.twice: result: i64 at the server, i32 at the caller");
  });
}

TEST_P(RpcVersions, calls_of_a_pool_say_their_types_too) {
  serve<now::wait>();
  run([this]() -> asio::awaitable<void> {
    PoolOptions options;
    options.connect = connect_options();
    Pool pool(io, static_list({address}), options);
    const auto waited = co_await pool.call<was::wait>(5s);
    expect_mismatch(waited, "i64[s] at the caller");
    const auto well = co_await pool.call<now::wait>(5ms);
    EXPECT_EQ(well.value_or(0), 5);
  });
}

// A release without a hello answers the settings, and knows no later flag.
class OldServer : public RpcVersions {};
INSTANTIATE_TEST_SUITE_P(Transport, OldServer, testing::Values("tcp"), testing_support::transport_name);

TEST_P(OldServer, is_sent_nothing_that_it_does_not_know) {
  using asio::use_awaitable;
  using asio::ip::tcp;
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  std::uint16_t request_flags = 0xffff;
  auto serve_one = [&]() -> asio::awaitable<void> {
    tcp::socket peer = co_await acceptor.async_accept(use_awaitable);
    std::array<std::byte, frame_header_bytes> bytes;
    co_await asio::async_read(peer, asio::buffer(bytes), use_awaitable);
    const auto settings = parse_header(bytes);
    EXPECT_TRUE(settings && settings->kind == FrameKind::settings);
    FrameHeader answer;
    answer.kind = FrameKind::settings;
    encode(answer, bytes.data());
    co_await asio::async_write(peer, asio::buffer(bytes), use_awaitable);
    co_await asio::async_read(peer, asio::buffer(bytes), use_awaitable);
    const auto request = parse_header(bytes);
    if (!request) throw std::runtime_error(request.error().what);
    request_flags = request->flags;
    std::vector<std::byte> body(request->body_bytes);
    co_await asio::async_read(peer, asio::buffer(body), use_awaitable);
    Bytes reply;
    FrameHeader header;
    header.kind = FrameKind::reply;
    header.id = request->id;
    header.body_bytes = 1;
    encode(header, reply.grow(frame_header_bytes));
    reply.append(as_bytes(std::string_view("\x2a")));
    co_await asio::async_write(peer, asio::buffer(reply.span().data(), reply.size()), use_awaitable);
    std::error_code closed;
    co_await asio::async_read(peer, asio::buffer(bytes), asio::redirect_error(use_awaitable, closed));
  };
  asio::co_spawn(io, serve_one(), [](const std::exception_ptr& thrown) {
    if (thrown) std::rethrow_exception(thrown);
  });
  const std::string where = "tcp://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port());
  with_client(where, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ(client.server_hello(), Hello());
    const auto waited = co_await client.call<was::wait>(5s);
    EXPECT_EQ(waited.value_or(0), 42);
  });
  EXPECT_EQ(request_flags, 0);
}

TEST_P(OldServer, that_says_nothing_is_given_up_in_time) {
  asio::ip::tcp::acceptor silent(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const std::string where = "tcp://127.0.0.1:" + std::to_string(silent.local_endpoint().port());
  run([&]() -> asio::awaitable<void> {
    ConnectOptions options;
    options.hello_timeout = 50ms;
    const auto client = co_await connect(where, options);
    if (client) throw std::runtime_error("connected");
    EXPECT_EQ(client.error().code, Errc::unreachable);
    EXPECT_NE(client.error().what.find("said nothing for 0.05 s"), std::string::npos) << client.error().what;
  });
}

}  // namespace
}  // namespace weir::rpc

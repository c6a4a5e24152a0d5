// Functions of Protobuf messages, called over each transport, and what happens if the two ends disagree.
#include "rpc/codec/protobuf.hpp"

#include <gmock/gmock.h>
#include <order.pb.h>

#include <map>

#include "rpc/server/reflection.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace shop {

std::uint64_t sum(const pb::Order& order) {
  std::uint64_t total = order.count();
  for (const pb::Order& part : order.parts()) total += sum(part);
  return total;
}

pb::Receipt price(const pb::Order& order) {
  pb::Receipt receipt;
  receipt.set_total(sum(order));
  return receipt;
}
asio::awaitable<weir::rpc::Result<pb::Receipt>> price_later(pb::Order order, weir::rpc::Context& context) {
  if (order.count() == 0) co_return weir::rpc::fail(weir::rpc::Errc::failed, "nothing ordered");
  pb::Receipt receipt = price(order);
  receipt.set_peer(context.peer());
  co_return receipt;
}
pb::Receipt last() { return price(pb::Order()); }
int forgotten = 0;
void forget(const pb::Order&) { ++forgotten; }
std::int32_t twice(std::int32_t value) { return 2 * value; }

}  // namespace shop

namespace weir::rpc {
namespace {

using testing_support::RpcTest;

static_assert(std::is_same_v<CodecOf<shop::price>::type, Protobuf>);
static_assert(std::is_same_v<CodecOf<shop::price_later>::type, Protobuf>);
static_assert(std::is_same_v<CodecOf<shop::last>::type, Protobuf>);
static_assert(std::is_same_v<CodecOf<shop::forget>::type, Protobuf>);
static_assert(std::is_same_v<CodecOf<shop::twice>::type, MessagePack>);

class ProtobufTest : public RpcTest {
 protected:
  void with_shop(std::function<asio::awaitable<void>(Client&)> body) {
    serve<shop::price, shop::price_later, shop::last, shop::forget, shop::twice>();
    with_client(address, std::move(body));
    server.reset();
  }
  static shop::pb::Order order(std::uint32_t count) {
    shop::pb::Order order;
    order.set_item("bolt");
    order.set_count(count);
    order.add_parts()->set_count(1000);
    return order;
  }
};

TEST_P(ProtobufTest, messages_are_arguments_and_results) {
  with_shop([](Client& client) -> asio::awaitable<void> {
    const shop::pb::Order wanted = order(7);
    const auto now = co_await client.call<shop::price>(wanted);
    EXPECT_EQ(now.value().total(), 1007u);
    const auto later = co_await client.call<shop::price_later>(wanted);
    EXPECT_EQ(later.value().total(), 1007u);
    EXPECT_FALSE(later.value().peer().empty());
    const auto empty = co_await client.call<shop::last>();
    EXPECT_EQ(empty.value().total(), 0u);
    shop::forgotten = 0;
    EXPECT_TRUE(co_await client.call<shop::forget>(wanted));
    EXPECT_EQ(shop::forgotten, 1);
    const auto both = co_await client.call<shop::twice>(21);  // other functions are unaffected
    EXPECT_EQ(both.value(), 42);
  });
}

TEST_P(ProtobufTest, a_function_can_fail_instead) {
  with_shop([](Client& client) -> asio::awaitable<void> {
    const shop::pb::Order nothing = order(0);
    const auto refused = co_await client.call<shop::price_later>(nothing);
    EXPECT_EQ(refused.error().code, Errc::failed);
    EXPECT_EQ(refused.error().what, "nothing ordered");
  });
}

TEST_P(ProtobufTest, arguments_in_another_codec_are_refused) {
  with_shop([](Client& client) -> asio::awaitable<void> {
    const auto refused = co_await client.call_by_name<std::int32_t>("shop.price", 7);
    EXPECT_EQ(refused.error().code, Errc::wrong_codec);
    EXPECT_THAT(refused.error().what, testing::HasSubstr("shop.price takes protobuf"));
    EXPECT_TRUE(did_not_run(refused.error().code));
    CallOptions options;
    options.codec = Protobuf::number;
    const std::array<std::byte, 0> empty;
    const auto also = co_await client.call_encoded("shop.twice", options, empty);
    EXPECT_EQ(also.error().code, Errc::wrong_codec);
    EXPECT_THAT(also.error().what, testing::HasSubstr("shop.twice takes msgpack"));
    options.codec = 200;  // an application's own codec, which this server lacks
    const auto unknown = co_await client.call_encoded("shop.price", options, empty);
    EXPECT_EQ(unknown.error().code, Errc::wrong_codec);
  });
}

TEST_P(ProtobufTest, bytes_that_are_no_message_are_bad_arguments) {
  with_shop([](Client& client) -> asio::awaitable<void> {
    CallOptions options;
    options.codec = Protobuf::number;
    const std::array bytes{std::byte{0x0a}, std::byte{0xff}};  // a string longer than what follows
    const auto bad = co_await client.call_encoded("shop.price", options, bytes);
    EXPECT_EQ(bad.error().code, Errc::bad_arguments);
    EXPECT_THAT(bad.error().what, testing::HasSubstr("shop.pb.Order"));
    const auto extra = co_await client.call_encoded("shop.last", options, bytes);
    EXPECT_EQ(extra.error().code, Errc::bad_arguments);
  });
}

TEST_P(ProtobufTest, reflection_tells_messages_and_codec) {
  with_shop([](Client& client) -> asio::awaitable<void> {
    const auto methods = co_await client.call_by_name<std::vector<MethodInfo>>(methods_method);
    std::map<std::string, std::string> told;
    for (const MethodInfo& method : methods.value())
      told[method.name] = method.schema + " in " + method.codec;
    EXPECT_EQ(told["shop.price"], "(shop.pb.Order) -> shop.pb.Receipt in protobuf");
    EXPECT_EQ(told["shop.forget"], "(shop.pb.Order) -> nil in protobuf");
    EXPECT_EQ(told["shop.last"], "() -> shop.pb.Receipt in protobuf");
    EXPECT_EQ(told["shop.twice"], "(i32) -> i32 in msgpack");
  });
}

INSTANTIATE_TEST_SUITE_P(Over, ProtobufTest, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc

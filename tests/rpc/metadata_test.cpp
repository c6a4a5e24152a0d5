// Metadata of calls and replies, and details of failures, from one end to the other.
#include "rpc/metadata.hpp"

#include "rpc/error_details.hpp"
#include "rpc/pool.hpp"
#include "rpc_fixture.hpp"

namespace bakery {

enum class Refusal { sold_out, not_for_sale };
struct Missing {
  std::string what;
  std::uint32_t wanted = 0;
  bool operator==(const Missing&) const = default;
};

weir::rpc::Result<std::int32_t> buy(std::string what) {
  using weir::rpc::Errc;
  if (what == "bread") return weir::rpc::fail(Errc::failed, "no bread is left", Missing{what, 3});
  if (what == "oven") return weir::rpc::fail(Errc::denied, "it is not for sale", Refusal::not_for_sale);
  if (what == "all") return weir::rpc::fail(Errc::failed, "so much", std::string(1 << 20, 'x'));
  return weir::rpc::fail(Errc::failed, "what?");
}
asio::awaitable<weir::rpc::Result<std::int32_t>> buy_later(std::string what) { co_return buy(what); }

// Returns the metadata that arrived, and one more.
std::int32_t mirror(weir::rpc::Context& context) {
  context.reply_metadata = context.metadata;
  context.reply_metadata["seen"] = "yes";
  return 1;
}
asio::awaitable<weir::rpc::Result<std::int32_t>> mirror_later(bool fails, weir::rpc::Context& context) {
  context.reply_metadata = context.metadata;
  if (fails) co_return weir::rpc::fail(weir::rpc::Errc::failed, "as asked");
  co_return 2;
}
std::int32_t too_much(weir::rpc::Context& context) {
  context.reply_metadata["huge"] = std::string(weir::rpc::max_metadata_bytes, 'x');
  return 3;
}

}  // namespace bakery

namespace weir::rpc {
namespace {

using testing_support::RpcTest;

class RpcMetadata : public RpcTest {};
INSTANTIATE_TEST_SUITE_P(Transport, RpcMetadata, testing::Values("tcp", "tls", "rdma"),
                         testing_support::transport_name);

TEST_P(RpcMetadata, goes_with_a_call_and_comes_back_with_its_reply) {
  serve<bakery::mirror, bakery::mirror_later>();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const Metadata sent{{"tenant", "7"}, {"empty", ""}, {"bytes", std::string("\0\xff", 2)}};
    Metadata came;
    CallOptions options;
    options.metadata = &sent;
    options.reply_metadata = &came;
    Metadata wanted = sent;
    wanted["seen"] = "yes";
    const auto one = co_await client.call<bakery::mirror>(options);
    EXPECT_EQ(one.value_or(0), 1);
    EXPECT_EQ(came, wanted);
    came.clear();
    const auto two = co_await client.call<bakery::mirror_later>(options, false);
    EXPECT_EQ(two.value_or(0), 2);
    EXPECT_EQ(came, sent);
    came.clear();
    const auto failed = co_await client.call<bakery::mirror_later>(options, true);
    EXPECT_EQ(failed.error().what, "as asked");
    EXPECT_EQ(came, sent);
  });
}

TEST_P(RpcMetadata, beyond_its_bounds_is_an_error_of_the_one_call) {
  serve<bakery::mirror, bakery::too_much>();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const Metadata huge{{"huge", std::string(max_metadata_bytes, 'x')}};
    Metadata many;
    for (std::size_t i = 0; i <= max_metadata_entries; ++i) many[std::to_string(i)] = "x";
    for (const Metadata* one : {&huge, static_cast<const Metadata*>(&many)}) {
      CallOptions options;
      options.metadata = one;
      const auto refused = co_await client.call<bakery::mirror>(options);
      EXPECT_EQ(refused.error().code, Errc::too_large);
    }
    const auto replied = co_await client.call<bakery::too_much>();
    EXPECT_EQ(replied.error().code, Errc::too_large) << replied.error().what;
    const auto well = co_await client.call<bakery::mirror>();
    EXPECT_EQ(well.value_or(0), 1);
  });
}

struct Asking final : ClientInterceptor {
  Metadata back;
  Result<void> before(OutgoingCall& call) override {
    call.metadata["tenant"] = "8";
    return {};
  }
  void after(std::string_view, const CallEnd& end) override {
    if (end.metadata != nullptr) back = *end.metadata;
  }
};
struct Admitting final : ServerInterceptor {
  Result<void> before(Context& call) override {
    call.reply_metadata["admitted"] = call.metadata["tenant"];
    if (call.metadata["tenant"] == "none") return fail(Errc::denied, "no such tenant");
    return {};
  }
};

TEST_P(RpcMetadata, is_read_and_written_by_interceptors_of_both_ends) {
  ServerOptions server_options;
  server_options.interceptors = {std::make_shared<Admitting>()};
  serve<shop::add>(std::move(server_options));
  const auto asking = std::make_shared<Asking>();
  run([&]() -> asio::awaitable<void> {
    ConnectOptions options = connect_options();
    options.interceptors = {asking};
    auto client = co_await connect(address, options);
    if (!client) throw std::runtime_error(client.error().what);
    const Metadata own{{"tenant", "none"}, {"more", "1"}};  // the interceptor's come first
    Metadata came;
    CallOptions call;
    call.metadata = &own;
    call.reply_metadata = &came;
    const auto sum = co_await client->call<shop::add>(call, 2, 3);
    EXPECT_EQ(sum.value_or(0), 5);
    const Metadata admitted{{"admitted", "8"}};
    EXPECT_EQ(asking->back, admitted);
    EXPECT_EQ(came, admitted);
  });
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const Metadata own{{"tenant", "none"}};
    Metadata came;
    CallOptions call;
    call.metadata = &own;
    call.reply_metadata = &came;
    const auto sum = co_await client.call<shop::add>(call, 2, 3);
    EXPECT_EQ(sum.error().code, Errc::denied);
    EXPECT_EQ(came["admitted"], "none");
  });
}

TEST_P(RpcMetadata, details_of_a_failure_come_as_what_they_are) {
  serve<bakery::buy, bakery::buy_later>();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    for (const bool later : {false, true}) {
      const auto buy = [&](std::string what) {
        return later ? client.call<bakery::buy_later>(what) : client.call<bakery::buy>(what);
      };
      const auto bread = co_await buy("bread");
      EXPECT_EQ(bread.error().what, "no bread is left");
      const bakery::Missing missing{"bread", 3};
      EXPECT_EQ(details_of<bakery::Missing>(bread.error()), missing);
      EXPECT_FALSE(details_of<bakery::Refusal>(bread.error()));
      const auto oven = co_await buy("oven");
      EXPECT_EQ(oven.error().code, Errc::denied);
      EXPECT_EQ(details_of<bakery::Refusal>(oven.error()), bakery::Refusal::not_for_sale);
      const auto nothing = co_await buy("nothing");
      EXPECT_FALSE(details_of<bakery::Missing>(nothing.error()));
      const auto all = co_await buy("all");
      EXPECT_EQ(all.error().what, "so much (its details are too large to be sent)");
    }
  });
}

TEST_P(RpcMetadata, a_pool_hands_details_on) {
  serve<bakery::buy>();
  run([this]() -> asio::awaitable<void> {
    PoolOptions options;
    options.connect = connect_options();
    Pool pool(io, static_list({address}), options);
    const auto oven = co_await pool.call<bakery::buy>("oven");
    EXPECT_EQ(details_of<bakery::Refusal>(oven.error()), bakery::Refusal::not_for_sale);
  });
}

TEST(Metadata, that_is_cut_off_or_no_map_is_refused) {
  Bytes whole;
  const Metadata sent{{"a", "1"}, {"b", ""}};
  ASSERT_TRUE(append(whole, sent));
  Metadata read;
  EXPECT_EQ(read_metadata(whole.span(), read).value_or(0), whole.size());
  EXPECT_EQ(read, sent);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read_metadata(std::as_const(whole).span().first(size), read)) << size;
  const std::string_view wrong[] = {
      {"\x01\x00\xc0", 3}, {"\x03\x00\x81\x01\x02", 5}, {"\x02\x00\x80\xc0", 4}, {"\xff\xff\x80", 3}};
  for (const std::string_view text : wrong) EXPECT_FALSE(read_metadata(as_bytes(text), read));
}

TEST(ErrorDetails, have_the_name_of_their_type) {
  EXPECT_EQ(name_of_details<bakery::Refusal>(), "bakery.Refusal");
  EXPECT_EQ(dotted_name("{anonymous}::shop::A"), "shop.A");
  EXPECT_EQ(dotted_name("shop::(anonymous namespace)::A"), "shop.A");
}

}  // namespace
}  // namespace weir::rpc

// Values that cannot be encoded: the caller gets an error, and the connection is unaffected.
#include <gtest/gtest.h>

#include "tests/rpc/rpc_fixture.hpp"

namespace odd {

// A type with values that have no wire form; the text before such a value is already encoded when that is
// noticed.
struct Even {
  std::int32_t number = 0;
};
struct Labelled {
  std::string label;
  Even even;
};

}  // namespace odd

namespace weir::rpc {

template <>
struct Wire<odd::Even> {
  static void write(MsgpackWriter& to, const odd::Even& value) {
    if (value.number % 2 != 0) throw std::domain_error("odd");
    to.signed_integer(value.number);
  }
  static bool read(MsgpackReader& from, odd::Even& value) { return read_integer(from, value.number); }
};

}  // namespace weir::rpc

namespace odd {

using weir::rpc::Reader;
using weir::rpc::Writer;

std::int32_t number(Labelled of) { return of.even.number; }
Labelled labelled(std::string label, std::int32_t number) { return {std::move(label), {number}}; }
asio::awaitable<std::int32_t> last(Reader<Labelled> in) {
  std::int32_t last = 0;
  for (;;) {
    const auto value = co_await in.read();
    if (!value) break;
    last = value->even.number;
  }
  co_return last;
}
asio::awaitable<void> all(std::string label, std::int32_t first, Writer<Labelled> out) {
  const Labelled value{std::move(label), {first}};
  (void)co_await out.write(value);
}

}  // namespace odd

namespace weir::rpc {
namespace {

// In the queue with other frames, and in a block of its own.
constexpr std::size_t label_sizes[] = {10, 200'000};

class Unencodable : public testing_support::RpcTest {
 protected:
  void SetUp() override {
    RpcTest::SetUp();
    serve<odd::number, odd::labelled, odd::last, odd::all>();
  }
};

TEST_P(Unencodable, arguments_are_thrown_to_the_caller) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    for (const std::size_t size : label_sizes) {
      const odd::Labelled good{std::string(size, 'g'), {2}}, bad{std::string(size, 'b'), {3}};
      auto before = client.call<odd::number>(good);  // in the queue
      EXPECT_THROW((void)client.call<odd::number>(bad), std::domain_error);
      EXPECT_EQ((co_await client.call<odd::number>(good)).value_or(0), 2);
      EXPECT_EQ((co_await std::move(before)).value_or(0), 2);
      EXPECT_EQ(client.in_flight(), 0u);
    }
  });
}

TEST_P(Unencodable, results_are_the_functions_failure) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    for (const std::size_t size : label_sizes) {
      const std::string label(size, 'l');
      const auto failed = co_await client.call<odd::labelled>(label, 3);
      EXPECT_EQ(failed.error().code, Errc::failed) << failed.error().what;
      EXPECT_EQ((co_await client.call<odd::labelled>(label, 4)).value().even.number, 4);
    }
  });
}

TEST_P(Unencodable, items_are_thrown_to_who_writes_them) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    for (const std::size_t size : label_sizes) {
      const odd::Labelled good{std::string(size, 'g'), {2}}, bad{std::string(size, 'b'), {3}};
      auto stream = client.stream<odd::last>();
      EXPECT_TRUE(co_await stream.write(good));
      EXPECT_THROW((void)stream.write(bad), std::domain_error);
      EXPECT_EQ((co_await stream.finish()).value_or(0), 2);
    }
  });
}

TEST_P(Unencodable, items_of_a_function_are_its_failure) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    for (const std::size_t size : label_sizes) {
      const std::string label(size, 'l');
      auto bad = client.stream<odd::all>(label, 3);
      const auto failed = co_await bad.read();
      EXPECT_EQ(failed.error().code, Errc::failed) << failed.error().what;
      auto good = client.stream<odd::all>(label, 4);
      EXPECT_EQ((co_await good.read()).value().even.number, 4);
      EXPECT_TRUE(co_await good.finish());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Over, Unencodable, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc

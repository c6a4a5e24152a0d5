// A small call allocates no heap memory once the connection is warm: every operator new of the process is
// counted, for client and server together.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "tests/rpc/rpc_fixture.hpp"

namespace {
std::uint64_t allocations = 0;
}

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  if (void* memory = std::aligned_alloc(static_cast<std::size_t>(alignment), (size + 63) / 64 * 64))
    return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace weir::rpc {
namespace {

class Allocations : public testing_support::RpcTest {};

TEST_P(Allocations, none_for_a_small_call_after_the_first) {
  serve<shop::add, shop::echo>();
  // Within run(), because Asio's cache of reusable memory lives only that long.
  const auto calls = [](Client& client, int count, int& wrong) -> asio::awaitable<void> {
    for (int i = 0; i < count; ++i) {
      const auto sum = co_await client.call<shop::add>(i, 1);
      wrong += sum && *sum == i + 1 ? 0 : 1;
      const auto text = co_await client.call<shop::echo>("a short text");
      wrong += text && text->size() == 12 ? 0 : 1;
    }
  };
  const auto measure = [&]() -> asio::awaitable<void> {
    ConnectOptions options = connect_options();
    auto client = co_await connect(address, options);
    int wrong = 0;
    co_await calls(*client, 200, wrong);
    const std::uint64_t before = allocations;
    co_await calls(*client, 1000, wrong);
    EXPECT_EQ(allocations - before, 0u) << "in 2000 calls";
    EXPECT_EQ(wrong, 0);
  };
  bool ended = false;
  asio::co_spawn(io, measure(), [&](const std::exception_ptr& thrown) {
    ended = thrown == nullptr;
    server->stop();
  });
  io.run();
  EXPECT_TRUE(ended);
}

INSTANTIATE_TEST_SUITE_P(Over, Allocations, testing::Values("tcp", "unix", "rdma"),
                         testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
